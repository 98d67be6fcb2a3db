// Writers of a store, and its server, killed at random moments: what appears is whole, and what was
// reported as written is there.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "support/files/temporary_directory.hpp"
#include "support/files/whole_file.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class StoreDeath : public testing::Test {
 protected:
  /// Looks at every file that has a name.
  void expect_all_whole() const {
    for (const auto& each : std::filesystem::directory_iterator(directory_ / "")) {
      if (each.is_directory()) continue;
      EXPECT_GT(number_of_whole(each.path()), 0U) << each.path();
    }
  }
  std::size_t unfinished() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(directory_ / ".ucxio-unfinished"), {}));
  }
  std::chrono::milliseconds a_moment() {
    return std::chrono::milliseconds(20 + static_cast<int>(random_() % 200));
  }

  const temporary_directory directory_;
  std::mt19937 random_{17};
};

TEST_F(StoreDeath, LeavesNothingOfAKilledWriter) {
  ucx_server served;
  const publication store = served.publish_store(directory_ / "", {.writable = true});
  for (int round = 0; round < 10; ++round) {
    test_peer writer("tcp");
    writer.ask("write_files " + served.url());
    std::this_thread::sleep_for(a_moment());
    writer.process().kill();
    for (int i = 0; i < 3000 && unfinished() > 0; ++i) std::this_thread::sleep_for(10ms);
    EXPECT_EQ(unfinished(), 0U);
    expect_all_whole();
    // Nobody writes the names any more.
    client next(served.url());
    for (int i = 0; i < 8; ++i) {
      std::error_code ec;
      next.create("file" + std::to_string(i), {}, {}, ec);
      EXPECT_FALSE(ec) << ec.message();
    }
  }
}

TEST_F(StoreDeath, KeepsWhatWasCommittedWhenTheServerIsKilled) {
  std::map<std::string, std::uint64_t> committed;
  for (int round = 0; round < 8; ++round) {
    test_peer server("tcp");
    const std::string url = server.ask("serve");
    server.ask("publish_store " + (directory_ / "").string());
    std::promise<void> begun;  // with connecting, and every other time when a file is there
    std::jthread killing([&, after = a_moment()] {
      begun.get_future().wait_for(20s);
      std::this_thread::sleep_for(after);
      server.process().kill();
    });
    bool alive = true;
    for (std::uint64_t i = 1; alive; ++i) {
      if (i == (round % 2 == 0 ? 1U : 2U)) begun.set_value();
      const std::string name = "file" + std::to_string(i % 8);
      const std::uint64_t number = static_cast<std::uint64_t>(round) * 1'000'000 + i;
      ofstream out(url + '/' + name);
      out << whole_file(random_() % 2'000'000, number);
      out.close();
      alive = static_cast<bool>(out);
      if (alive) committed[name] = number;
    }
    expect_all_whole();
    // One that was cut off in its commit may have appeared all the same.
    for (const auto& [name, number] : committed) {
      EXPECT_GE(number_of_whole(directory_ / name), number) << name;
    }
  }
  EXPECT_FALSE(committed.empty());
}

TEST_F(StoreDeath, IsNoConsequenceOfALimitOfTheServers) {
  test_peer server("tcp");
  const std::string url = server.ask("serve");
  server.ask("publish_store " + (directory_ / "").string() + " 100000");
  const std::string text(300'000, 'x');
  ofstream out(url + "/new");
  out << text << std::flush;
  EXPECT_TRUE(out.bad());
  EXPECT_EQ(out.error(), errc::no_space);
  out.close();
  EXPECT_FALSE(std::filesystem::exists(directory_ / "new"));
  ofstream(url + "/small") << text.substr(0, 100'000);
  EXPECT_EQ(content_of(directory_ / "small").size(), 100'000U);
  std::error_code ec;
  client(url).resize("small", 200'000, {}, ec);
  EXPECT_EQ(ec, errc::no_space);
}

TEST_F(StoreDeath, KeepsWhatWasFlushedInPlace) {
  std::uint64_t flushed = 0;
  for (int round = 0; round < 5; ++round) {
    test_peer server("tcp");
    const std::string url = server.ask("serve");
    server.ask("publish_store " + (directory_ / "").string());
    std::jthread killing([&, after = a_moment()] {
      std::this_thread::sleep_for(after);
      server.process().kill();
    });
    ofstream log(url + "/log", std::ios::app);
    while (log) {
      log << "line " << flushed + 1 << std::endl;
      if (log) ++flushed;
    }
    std::ifstream back(directory_ / "log");
    std::uint64_t found = 0;
    std::string word;
    for (std::uint64_t number = 0; back >> word >> number;) {
      EXPECT_EQ(number, found + 1);
      found = number;
    }
    EXPECT_GE(found, flushed);
    flushed = found;
  }
}

TEST(MemoryStoreDeath, LeavesWhatTheNextOneRemoves) {
  std::string within = "/dev/shm/ucxio-test-XXXXXX";
  ASSERT_NE(::mkdtemp(within.data()), nullptr);
  const auto directories = [&] {
    return std::distance(std::filesystem::directory_iterator(within), {});
  };
  test_peer killed("tcp");
  const std::string url = killed.ask("serve");
  killed.ask("memory_store " + within);
  { ofstream(url + "/file") << "text"; }
  {
    ucx_server served;
    const publication beside = served.allocate_store({.quota = 100'000}, within);
    EXPECT_EQ(directories(), 2);
    killed.process().kill();
  }
  EXPECT_EQ(directories(), 1) << "nobody has looked yet";
  {
    ucx_server served;
    const publication next = served.allocate_store({.quota = 100'000}, within);
    EXPECT_EQ(directories(), 1);
    EXPECT_TRUE(client(served.url()).list().empty());
  }
  EXPECT_EQ(directories(), 0);
  std::filesystem::remove_all(within);
}

}  // namespace
}  // namespace ucx::test
