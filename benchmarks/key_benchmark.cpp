// Memory that another process exposes by UCX's calls, read by its bare key: beside ucp_get_nbx.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ios>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/stream.hpp"
#include "ucx/worker.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;
using party = owner_process::party;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t region_size = 64 * mib;
/// Far enough apart that no answer to one is an answer to the next.
constexpr std::size_t scattered = mib + 64;
constexpr double small_reads = 1000;  // a pass counts these as one call

remote_region open_by_key(const worker& driven, const raw_target& target) {
  endpoint connection(driven, worker_address::from_native(target.address), {.plain_peer = true});
  connection.wait_connected();
  const auto memory = remote_descriptor::of_key(target.base, target.size, target.key, access::read);
  return remote_region(connection, memory, {.trusted_peer = true});
}

/// Both readers of one owner, which has UCX alone.
class bench {
 public:
  bench(owner_process& owner, plane where, const owner_process::target& target)
      : owner_(serving_raw(owner)),
        context_(options_of(where)),
        worker_(context_),
        region_(open_by_key(worker_, target.raw)),
        raw_(fabric_of(where, context_), target.raw, target.raw_region),
        in_(region_) {}

  double read_region(std::size_t call, std::size_t stride) {
    return read(call, stride, [this](std::uint64_t offset, std::span<std::byte> into) {
      region_.read_at(offset, into);
    });
  }
  /// One call after the other.
  double read_stream(std::size_t call) {
    const double rate = read(call, 0, [this](std::uint64_t offset, std::span<std::byte> into) {
      if (offset == 0) in_.seekg(0);
      in_.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
    });
    if (!in_) throw std::runtime_error("reading: " + in_.error().message());
    // What was read ahead arrives before the next pass, not in it.
    in_.sync();
    region_.read_at(0, std::span(into_).first(8));
    return rate;
  }
  double read_raw(const raw_loop& loop) { return raw_.read(loop, pass_time()); }

 private:
  static owner_process& serving_raw(owner_process& owner) {
    owner.serve(party::raw);
    return owner;
  }
  template <class Read>
  double read(std::size_t call, std::size_t stride, const Read& read_one) {
    const std::span<std::byte> into = std::span(into_).first(call);
    const std::uint64_t look = call >= mib / 4 ? 4 : 32;
    std::uint64_t calls = 0;
    const clock::time_point start = clock::now();
    const clock::time_point until = start + pass_time();
    do {
      const std::uint64_t offset = call_offset(calls, call, stride, region_size);
      read_one(offset, into);
      check_pattern(into, offset);
    } while (++calls % look != 0 || clock::now() < until);
    const double seconds = std::chrono::duration<double>(clock::now() - start).count();
    return static_cast<double>(calls) / seconds;
  }

  owner_process& owner_;
  ucx::context context_;
  ucx::worker worker_;
  remote_region region_;
  raw_client raw_;
  ucx::istream in_;
  std::vector<std::byte> into_ = std::vector<std::byte>(mib);
};

comparison large(const std::shared_ptr<bench>& on, const std::string& name, contender ours,
                 std::initializer_list<unsigned> windows) {
  comparison made;
  made.name = name;
  made.ours = std::move(ours);
  for (const unsigned window : windows) {
    const raw_loop loop{raw_way::rma, window, mib};
    made.others.push_back(
        {"ucp_get_nbx w" + std::to_string(window), [on, loop] { return on->read_raw(loop); }});
  }
  made.target = 0.97;
  made.scale = static_cast<double>(mib) / 1e9;
  made.unit = "GB/s";
  return made;
}

void register_all(const std::shared_ptr<bench>& on, const std::string& prefix) {
  register_comparison(large(on, prefix + "read/1MiB",
                            {"remote_region::read_at", [on] { return on->read_region(mib, 0); }},
                            {1}));
  register_comparison(large(on, prefix + "stream/1MiB",
                            {"ucx::istream", [on] { return on->read_stream(mib); }}, {1, 4, 16}));
  comparison small;
  small.name = prefix + "1000 times read/8B";
  small.ours = {"remote_region::read_at",
                [on] { return on->read_region(8, scattered) / small_reads; }};
  const raw_loop loop{raw_way::rma, 1, 8, 0, scattered};
  small.others = {{"ucp_get_nbx", [on, loop] { return on->read_raw(loop) / small_reads; }}};
  small.by = measure::excess;
  small.target = 0.1;  // a tenth of a microsecond each
  register_comparison(small);
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  // It forks, before UCX is used here.
  owner_process owner(
      {{plane::tcp, region_size, fill_pattern}, {plane::shared_memory, region_size, fill_pattern}});
  pin_to_core(reader_core);
  const auto tcp = std::make_shared<bench>(owner, plane::tcp, owner.targets()[0]);
  const auto shared = std::make_shared<bench>(owner, plane::shared_memory, owner.targets()[1]);
  const int status = run_comparisons(argc, argv, [&] {
    register_all(tcp, "key/tcp/");
    register_all(shared, "key/shm/");
  });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
