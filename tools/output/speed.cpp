#include "output/speed.hpp"

#include <algorithm>
#include <istream>
#include <ostream>

namespace ucx::tool {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::size_t most_samples = 1'000'000;
/// Far enough apart that no cache line or page of one read serves the next.
constexpr std::uint64_t stride = (std::uint64_t{1} << 20U) + 4160;

double quantile(std::vector<float>& times, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + at, times.end());
  return static_cast<double>(times[static_cast<std::size_t>(at)]);
}

/// Calls `act` with the offset of each call in turn, and `begin` before each round.
template <class Begin, class Act>
throughput go_round(std::uint64_t size, std::size_t call, std::chrono::nanoseconds duration,
                    Begin begin, Act act) {
  throughput measured;
  measured.call = call;
  const std::uint64_t calls_of_round = size / call;
  // The clock is looked at once a mebibyte: it costs as much as a small call.
  const std::uint64_t look = std::max<std::uint64_t>(1, (std::uint64_t{1} << 20U) / call);
  const clock::time_point until = clock::now() + duration;
  do {
    if (measured.calls % calls_of_round == 0) begin();
    act(measured.calls % calls_of_round * call);
  } while (++measured.calls % std::min(look, calls_of_round) != 0 || clock::now() < until);
  return measured;
}

double since(clock::time_point start) {
  return std::chrono::duration<double>(clock::now() - start).count();
}

}  // namespace

latency measure_latency(const remote_region& region, std::chrono::nanoseconds duration) {
  latency measured;
  std::vector<std::byte> into(
      static_cast<std::size_t>(std::min<std::uint64_t>(sizeof(std::uint64_t), region.size())));
  measured.bytes = into.size();
  remote_region read = region.share();
  const std::uint64_t places = region.size() - into.size() + 1;
  std::vector<float> times;
  clock::time_point start = clock::now();
  const clock::time_point until = start + duration;
  for (std::uint64_t offset = 0; times.size() < most_samples; offset = (offset + stride) % places) {
    read.read_at(offset, into);
    const clock::time_point end = clock::now();
    times.push_back(std::chrono::duration<float, std::micro>(end - start).count());
    start = end;
    if (end >= until) break;
  }
  measured.reads = times.size();
  measured.min = static_cast<double>(*std::min_element(times.begin(), times.end()));
  measured.median = quantile(times, 0.5);
  measured.p99 = quantile(times, 0.99);
  return measured;
}

throughput measure_reading(std::istream& in, std::uint64_t size, std::size_t call,
                           std::chrono::nanoseconds duration) {
  std::vector<char> into(call);
  in.exceptions(std::ios_base::badbit | std::ios_base::failbit);
  const auto begin = [&] {
    in.seekg(0);
    in.sync();
  };
  const auto read = [&](std::uint64_t) {
    in.read(into.data(), static_cast<std::streamsize>(call));
  };
  const clock::time_point start = clock::now();
  throughput measured = go_round(size, call, duration, begin, read);
  measured.seconds = since(start);
  return measured;
}

throughput measure_writing(std::ostream& out, std::span<const char> content, std::size_t call,
                           std::chrono::nanoseconds duration) {
  out.exceptions(std::ios_base::badbit);
  const auto write = [&](std::uint64_t offset) {
    out.write(content.data() + offset, static_cast<std::streamsize>(call));
  };
  const clock::time_point start = clock::now();
  throughput measured = go_round(
      content.size(), call, duration, [&] { out.seekp(0); }, write);
  out.flush();
  measured.seconds = since(start);
  return measured;
}

}  // namespace ucx::tool
