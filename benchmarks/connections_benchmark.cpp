// Many connections to one server: what each takes to be made, to echo and to close, and what the
// server has in memory for it, by the size of TCP's segments.
//   connections_benchmark [--connections=N]
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "comparison.hpp"
#include "echo_process.hpp"
#include "network.hpp"
#include "raw_ucx.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"

namespace ucx::benchmarks {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
/// So many connect at the same time: the server gives up who has not said hello within 5 s.
constexpr std::size_t connecting_at_once = 50;
/// So many send 1 MiB at the same time, and have it sent back.
constexpr std::size_t long_ones_at_once = 16;
constexpr auto limit = 60s;

/// What each process needs for a connection, with room to spare.
constexpr ::rlim_t files_of_a_connection = 3;
constexpr ::rlim_t other_files = 64;

/// Lets this process, and those that it starts, open as many files as the system allows.
/// Errors: std::runtime_error where `connections` want more.
void allow_files(std::size_t connections) {
  ::rlimit files = {};
  ::getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
  const ::rlim_t wanted = connections * files_of_a_connection + other_files;
  if (files.rlim_max >= wanted) return;
  throw std::runtime_error(std::to_string(connections) + " connections want " +
                           std::to_string(wanted) + " open files, and a process may have " +
                           std::to_string(files.rlim_max) +
                           " (ulimit -Hn): raise that, or ask for fewer with --connections=N");
}

double microseconds_each(clock::time_point since, std::size_t count) {
  const std::chrono::duration<double, std::micro> passed = clock::now() - since;
  return passed.count() / static_cast<double>(count);
}

void await(std::span<request> all, const char* what) {
  if (!wait_all(all, limit)) throw std::runtime_error(std::string(what) + " takes too long");
  for (const request& each : all) {
    if (each.error()) throw std::runtime_error(std::string(what) + ": " + each.error().message());
  }
}

/// Clients of one worker, which this thread drives.
class crowd {
 public:
  crowd(const std::string& segment, std::size_t count)
      : context_(options_with_segments(segment)), count_(count) {
    connections_.reserve(count);
  }

  // Each returns the microseconds of one connection, of those of all.

  double connect(const socket_address& where) {
    const clock::time_point start = clock::now();
    std::size_t standing = 0;
    while (connections_.size() < count_) {
      connections_.emplace_back(
          worker_, where, endpoint_options{.connect_timeout = limit, .wait = connect_wait::none});
      if (connections_.size() % connecting_at_once != 0 && connections_.size() < count_) continue;
      while (standing < connections_.size()) connections_[standing++].wait_connected();
    }
    return microseconds_each(start, count_);
  }

  /// All bytes are checked, outside of the time.
  double echo(std::size_t bytes, std::size_t at_once) {
    std::vector<std::byte> sent(bytes);
    fill_pattern(sent);
    std::vector<std::vector<std::byte>> back(std::min(at_once, count_));
    double passed = 0;
    for (std::size_t first = 0; first < count_; first += at_once) {
      const std::size_t some = std::min(at_once, count_ - first);
      for (std::size_t i = 0; i < some; ++i) back[i].assign(bytes, std::byte{0});
      const clock::time_point start = clock::now();
      std::vector<request> exchanges;
      for (std::size_t i = 0; i < some; ++i) {
        endpoint& over = connections_[first + i];
        exchanges.push_back(over.start_receive(first + i, back[i]));
        exchanges.push_back(over.start_send(first + i, sent));
      }
      await(exchanges, "an echo");
      passed += microseconds_each(start, count_);
      for (std::size_t i = 0; i < some; ++i) check_pattern(back[i], 0);
    }
    return passed;
  }

  double leave() {
    const clock::time_point start = clock::now();
    std::vector<request> closing;
    for (endpoint& each : connections_) closing.push_back(each.start_close());
    await(closing, "closing");
    return microseconds_each(start, count_);
  }

 private:
  context context_;
  std::size_t count_;
  worker worker_{context_, {.close_timeout = limit, .heartbeat_timeout = limit}};
  std::vector<endpoint> connections_;
};

std::string rounded(double value) {
  const std::string text = std::to_string(value);
  return text.substr(0, text.find('.') + 2);
}

void measure(benchmark::State& state, const echo_process& server, const std::string& segment,
             std::size_t count) {
  const double before = server.resident_kilobytes();
  const auto kilobytes_each = [&] {
    return (server.resident_kilobytes() - before) / static_cast<double>(count);
  };
  const auto tell = [&](const char* what, double value) { state.counters[what] = value; };
  crowd all(segment, count);
  tell("connections", static_cast<double>(count));
  tell("connect_us", all.connect(server.address()));
  tell("connected_kB", kilobytes_each());
  tell("short_echo_us", all.echo(kib, count));
  tell("short_echo_kB", kilobytes_each());
  tell("long_echo_us", all.echo(mib, long_ones_at_once));
  tell("long_echo_kB", kilobytes_each());
  tell("close_us", all.leave());
  const auto value = [&](const char* what) { return rounded(state.counters[what].value); };
  tell("rate", state.counters["long_echo_kB"].value);
  state.SetLabel("kB at the server for each (connected: " + value("connected_kB") +
                 ", behind 1 KiB: " + value("short_echo_kB") + "); us each: connect " +
                 value("connect_us") + ", echo 1 KiB " + value("short_echo_us") + ", 1 MiB " +
                 value("long_echo_us") + ", close " + value("close_us"));
}

/// Takes our option out of the arguments. Errors: std::runtime_error where it is no number.
std::size_t take_count(int& argc, char** argv) {
  std::size_t count = 1000;
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    constexpr std::string_view ours = "--connections=";
    if (!argument.starts_with(ours)) {
      argv[kept++] = argv[i];
      continue;
    }
    char* end = nullptr;
    const unsigned long wanted = std::strtoul(argv[i] + ours.size(), &end, 10);
    if (*end != '\0' || wanted == 0 || wanted > 100'000) {
      throw std::runtime_error(std::string(argument) + ": a number from 1 to 100000 is wanted");
    }
    count = wanted;
  }
  argc = kept;
  return count;
}

/// Of each size one server, and one run: what malloc keeps of the first would be in the second.
void register_sizes(const std::vector<std::string>& segments, std::deque<echo_process>& servers,
                    std::size_t count) {
  const char* const chosen = std::getenv("UCX_TCP_TX_SEG_SIZE");
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::string& segment = segments[i];
    const std::string shown = segment.empty() ? chosen : segment;
    benchmark::RegisterBenchmark(("ratio/connections/segments of " + shown).c_str(),
                                 [&servers, segment, count, i](benchmark::State& state) {
                                   for ([[maybe_unused]] auto once : state) {
                                     try {
                                       measure(state, servers[i], segment, count);
                                       state.SetIterationTime(1);
                                     } catch (const std::exception& failure) {
                                       state.SkipWithError(failure.what());
                                       break;
                                     }
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
  try {
    const std::size_t count = take_count(argc, argv);
    allow_files(count);
    // Where the environment has chosen, as benchmarks/segments.sh does, there is one size.
    std::vector<std::string> segments = {"64k", "256k", "1m"};
    if (std::getenv("UCX_TCP_TX_SEG_SIZE") != nullptr) segments = {""};
    std::deque<echo_process> servers;
    for (const std::string& each : segments) servers.emplace_back(each);
    pin_to_core(reader_core);
    const int status =
        run_comparisons(argc, argv, [&] { register_sizes(segments, servers, count); });
    benchmark::ClearRegisteredBenchmarks();
    return status;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "%s\n", failure.what());
    return 1;
  }
}
