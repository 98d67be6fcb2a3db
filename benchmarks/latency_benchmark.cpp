// How long one small read over TCP takes: not only usually, but for the slowest of a hundred, too.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comparison.hpp"
#include "network.hpp"
#include "owner_process.hpp"
#include "raw_ucx.hpp"
#include "server_process.hpp"
#include "socket_client.hpp"
#include "socket_owner.hpp"
#include "ucx/client.hpp"
#include "ucx/remote_region.hpp"
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
constexpr std::chrono::milliseconds idle{5};
constexpr std::size_t enough_for_a_thousandth = 5000;

/// The owners, which are forked before this process uses UCX.
struct owners {
  socket_owner sockets{region_size};
  owner_process by_hand{{{plane::tcp, region_size, fill_pattern}}};  ///< Spins.
  server_process server{region_size};  ///< As servers are by default: looks a moment, and sleeps.
};

class bench {
 public:
  explicit bench(owners& all)
      : owner_(all.by_hand),
        ours_(owner_, plane::tcp, owner_.targets().front()),
        raw_(connect_raw(owner_, ours_.context())),
        socket_(all.sockets, connect_socket(all.sockets.address())),
        client_(all.server.url()),
        served_(client_.open("matrix")) {
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
  void read_served(std::uint64_t offset) { served_.read_at(offset, into_); }

  /// Times each of a pass's reads, and appends the microseconds. Both sides are idle for `pause`
  /// before each.
  void sample(party whom, const std::function<void(std::uint64_t)>& read,
              std::chrono::milliseconds pause, std::vector<double>& times) {
    owner_.serve(whom);
    const clock::time_point until = clock::now() + pass_time();
    clock::time_point start = clock::now();
    do {
      if (pause.count() > 0) {
        std::this_thread::sleep_for(pause);
        start = clock::now();
      }
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
  client client_;
  remote_region served_;
  std::unique_ptr<ucx::istream> in_;
  std::vector<std::byte> into_ = std::vector<std::byte>(call);
  std::uint64_t calls_ = 0;
};

struct reader {
  std::string name;
  party whom;
  std::function<void(std::uint64_t)> read;
  std::chrono::milliseconds pause{0};
  std::vector<double> times = {};
};

double quantile(std::vector<double>& times, double share) {
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(times.size() - 1));
  std::nth_element(times.begin(), times.begin() + at, times.end());
  return times[static_cast<std::size_t>(at)];
}

/// All of them in turns, once; each has a line of its own in the results.
void register_all(owners& all) {
  const auto on = std::make_shared<bench>(all);
  const auto readers = std::make_shared<std::vector<reader>>();
  readers->push_back(
      {"ucx::remote_region::read_at", party::ours, [on](auto at) { on->read_region(at); }});
  readers->push_back(
      {"ucx::istream, seek and read", party::ours, [on](auto at) { on->read_stream(at); }});
  readers->push_back(
      {"get by hand", party::raw, [on](auto at) { on->read_raw(raw_way::rma, at); }});
  readers->push_back(
      {"message by hand", party::raw, [on](auto at) { on->read_raw(raw_way::message, at); }});
  const auto served = [on](std::uint64_t at) { on->read_served(at); };
  const auto socket = [on](std::uint64_t at) { on->read_socket(at); };
  readers->push_back({"a default server", party::nobody, served});
  readers->push_back({"a default server, after 5 ms of nothing", party::nobody, served, idle});
  readers->push_back({"socket, sleeping", party::nobody, socket});
  readers->push_back({"socket, after 5 ms of nothing", party::nobody, socket, idle});
  for (std::size_t i = 0; i < readers->size(); ++i) {
    benchmark::RegisterBenchmark(("ratio/latency/8B/" + (*readers)[i].name).c_str(),
                                 [on, readers, i](benchmark::State& state) {
                                   if (readers->front().times.empty()) {
                                     for (unsigned turn = 0; turn < turns; ++turn) {
                                       for (reader& each : *readers)
                                         on->sample(each.whom, each.read, each.pause, each.times);
                                     }
                                   }
                                   for ([[maybe_unused]] auto once : state) {
                                     std::vector<double>& times = (*readers)[i].times;
                                     state.counters["rate"] = quantile(times, 0.5);
                                     state.counters["p50"] = quantile(times, 0.5);
                                     state.counters["p90"] = quantile(times, 0.9);
                                     state.counters["p99"] = quantile(times, 0.99);
                                     if (times.size() >= enough_for_a_thousandth) {
                                       state.counters["p99.9"] = quantile(times, 0.999);
                                     }
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
  // Over the wire, although the server is on this host and its memory could be read in place.
  ::setenv("UCXIO_TRANSFER_METHOD", "message", 0);
  owners all;
  pin_to_core(reader_core);
  const int status = run_comparisons(argc, argv, [&] { register_all(all); });
  benchmark::ClearRegisteredBenchmarks();
  return status;
}
