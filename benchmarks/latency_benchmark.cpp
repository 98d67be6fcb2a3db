// How long one small read over TCP takes: not only usually, but for the slowest of a hundred, too.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "network.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "socket_client.hpp"
#include "socket_owner.hpp"
#include "ucx/stream.hpp"
#include "ucxio_client.hpp"

namespace ucx::benchmarks {
namespace {

using clock = std::chrono::steady_clock;
using party = owner_process::party;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t region_size = 128 * mib;
constexpr std::size_t call = 8;
constexpr std::size_t scattered = mib + 64;
constexpr unsigned turns = 15;

class bench {
 public:
  bench(owner_process& owner, const socket_owner& sockets)
      : owner_(owner),
        ours_(owner, plane::tcp, owner.targets().front()),
        raw_(connect_raw(owner, ours_.context())),
        socket_(sockets, connect_socket(sockets.address())) {
    owner_.serve(party::ours);
    in_ = std::make_unique<ucx::istream>(ours_.region());
  }
  ~bench() {
    owner_.serve(party::ours);
    in_.reset();
    owner_.serve(party::raw);
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  void read_region(std::uint64_t offset) { ours_.region().read_at(offset, into_); }
  void read_stream(std::uint64_t offset) {
    in_->seekg(static_cast<std::streamoff>(offset));
    in_->read(reinterpret_cast<char*>(into_.data()), call);
  }
  void read_raw(raw_way way, std::uint64_t offset) { raw_.read_one({way, 1, call}, offset, into_); }
  void read_socket(std::uint64_t offset) { socket_.read_one(offset, into_); }

  /// Times each of a pass's reads, and appends the microseconds.
  void sample(party whom, const std::function<void(std::uint64_t)>& read,
              std::vector<double>& times) {
    owner_.serve(whom);
    const clock::time_point until = clock::now() + pass_time();
    clock::time_point start = clock::now();
    do {
      const std::uint64_t offset = call_offset(++calls_, call, scattered, region_size);
      read(offset);
      const clock::time_point end = clock::now();
      times.push_back(std::chrono::duration<double, std::micro>(end - start).count());
      check_pattern(into_, offset);
      start = clock::now();
    } while (start < until);
  }

 private:
  static raw_client connect_raw(owner_process& owner, const context& ours) {
    owner.serve(party::raw);
    const owner_process::target& target = owner.targets().front();
    return raw_client(fabric_of(plane::tcp, ours), target.raw, target.raw_region);
  }

  owner_process& owner_;
  ucxio_client ours_;
  raw_client raw_;
  socket_client socket_;
  std::unique_ptr<ucx::istream> in_;
  std::vector<std::byte> into_ = std::vector<std::byte>(call);
  std::uint64_t calls_ = 0;
};

struct reader {
  std::string name;
  party whom;
  std::function<void(std::uint64_t)> read;
  std::vector<double> times = {};
};

double quantile(std::vector<double>& times, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + at, times.end());
  return times[static_cast<std::size_t>(at)];
}

/// All of them in turns, once; each has a line of its own in the results.
void register_all(owner_process& owner, const socket_owner& sockets) {
  const auto on = std::make_shared<bench>(owner, sockets);
  const auto readers = std::make_shared<std::vector<reader>>();
  readers->push_back(
      {"ucx::remote_region::read_at", party::ours, [on](auto at) { on->read_region(at); }});
  readers->push_back(
      {"ucx::istream, seek and read", party::ours, [on](auto at) { on->read_stream(at); }});
  readers->push_back(
      {"get by hand", party::raw, [on](auto at) { on->read_raw(raw_way::rma, at); }});
  readers->push_back(
      {"message by hand", party::raw, [on](auto at) { on->read_raw(raw_way::message, at); }});
  readers->push_back({"socket, sleeping", party::nobody, [on](auto at) { on->read_socket(at); }});
  for (std::size_t i = 0; i < readers->size(); ++i) {
    benchmark::RegisterBenchmark(("ratio/latency/8B/" + (*readers)[i].name).c_str(),
                                 [on, readers, i](benchmark::State& state) {
                                   if (readers->front().times.empty()) {
                                     for (unsigned turn = 0; turn < turns; ++turn) {
                                       for (reader& each : *readers)
                                         on->sample(each.whom, each.read, each.times);
                                     }
                                   }
                                   for ([[maybe_unused]] auto once : state) {
                                     std::vector<double>& times = (*readers)[i].times;
                                     state.counters["rate"] = quantile(times, 0.5);
                                     state.counters["p50"] = quantile(times, 0.5);
                                     state.counters["p90"] = quantile(times, 0.9);
                                     state.counters["p99"] = quantile(times, 0.99);
                                     state.counters["p99.9"] = quantile(times, 0.999);
                                     state.SetLabel("us, the median");
                                     state.SetIterationTime(quantile(times, 0.5) / 1e6);
                                   }
                                 })
        ->Iterations(1)
        ->UseManualTime();
  }
}

}  // namespace
}  // namespace ucx::benchmarks

int main(int argc, char** argv) {
  using namespace ucx::benchmarks;
  const socket_owner sockets(region_size);
  owner_process owner({{plane::tcp, region_size, fill_pattern}});
  pin_to_core(reader_core);
  const int status = run_comparisons(argc, argv, [&] { register_all(owner, sockets); });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
