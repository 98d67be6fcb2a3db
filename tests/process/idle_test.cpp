// Streams that are open and do nothing wake nobody, on neither side.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <thread>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/test_peer.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/fstream.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// Returns how often threads of the process have gone to sleep by themselves so far: each wake-up
/// ends with that. The main thread of this process is the test, and is left out.
std::uint64_t sleeps_of(::pid_t process) {
  std::uint64_t all = 0;
  const std::filesystem::path threads = "/proc/" + std::to_string(process) + "/task";
  for (const auto& thread : std::filesystem::directory_iterator(threads)) {
    if (thread.path().filename() == std::to_string(::getpid())) continue;
    std::ifstream status(thread.path() / "status");
    for (std::string word; status >> word;) {
      std::uint64_t sleeps = 0;
      if (word == "voluntary_ctxt_switches:" && status >> sleeps) all += sleeps;
    }
  }
  return all;
}

/// Returns how often threads of this process and of `there` went to sleep in the quietest of some
/// stretches: what the last call started may still end; whatever is done now and then is done in
/// each second, as heartbeats are.
std::uint64_t fewest_sleeps_with(::pid_t there) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  for (int looks = 0; looks < 8 && least > 0; ++looks) {
    const std::uint64_t before = sleeps_of(::getpid()) + sleeps_of(there);
    std::this_thread::sleep_for(1500ms);
    least = std::min(least, sleeps_of(::getpid()) + sleeps_of(there) - before);
  }
  return least;
}

TEST(IdleStreams, WakeNobody) {
  constexpr std::size_t size = 3'000'000;
  const temporary_directory directory;
  test_peer owner("tcp");
  const std::string url = owner.ask("serve");
  owner.ask("publish borrowed " + std::to_string(size) + " 1");
  owner.ask("provide mapped " + std::to_string(size) + " 1");
  owner.ask("publish_file file " + directory.make("file", std::string(size, 'x')).string());
  std::deque<fstream> streams;
  for (int i = 0; i < 4; ++i) {
    for (const std::string name : {"borrowed", "mapped", "file"}) {
      const bool memory = name != "file";
      streams.emplace_back(url + '/' + name, memory ? std::ios::in | std::ios::out : std::ios::in);
      fstream& made = streams.back();
      ASSERT_NE(made.get(), EOF) << name << ": " << made.error_message();
      if (!memory) continue;
      made.seekp(1000);
      ASSERT_TRUE(made.put('w').flush()) << name << ": " << made.error_message();
    }
  }
  ifstream following(url + "/file", std::ios::in, stream_options{.follow_timeout = 1s});
  ASSERT_NE(following.get(), EOF);

  const ::pid_t there = owner.process().pid();
  EXPECT_EQ(fewest_sleeps_with(there), 0U);
  for (fstream& each : streams) EXPECT_NE(each.get(), EOF) << each.error_message();
}

// The end of a peer's process is waited for, and not looked for.
TEST(IdleConnections, OverSharedMemoryWakeNobody) {
  test_peer owner("local");
  context_options options;
  options.transports = {"posix", "cma", "self"};
  const context here(options);
  const worker driven(here, {.progress = progress_mode::sleeping_thread});
  endpoint connection(driven, parse_worker_address(owner.ask("address")));
  connection.wait_connected();
  const ::pid_t there = owner.process().pid();
  EXPECT_EQ(fewest_sleeps_with(there), 0U);
  EXPECT_EQ(connection.state(), connection_state::active);
}

// Else the tests above see nothing.
TEST(IdleStreams, WakeTheirOwnersWhenTheyRead) {
  test_peer owner("tcp");
  const std::string url = owner.ask("serve");
  const temporary_directory directory;
  owner.ask("publish_file file " + directory.make("file", std::string(1'000'000, 'x')).string());
  ifstream in(url + "/file", std::ios::in, stream_options{.buffer_size = 1000, .queue_depth = 1});
  const std::uint64_t before = sleeps_of(owner.process().pid());
  std::uint64_t seen = before;
  for (int i = 0; i < 900 && seen == before; ++i) {
    in.seekg(i * 1000);
    ASSERT_NE(in.get(), EOF) << in.error_message();
    std::this_thread::sleep_for(1ms);  // longer than its worker polls
    seen = sleeps_of(owner.process().pid());
  }
  EXPECT_GT(seen, before);
}

}  // namespace
}  // namespace ucx::test
