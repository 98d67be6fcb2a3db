// Servers and clients in processes of their own, killed and stopped in every state.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/network.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/stream.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t served_size = std::size_t{32} << 20U;

/// To whom a server that is silent for some seconds is dead.
client_options quick(std::chrono::nanoseconds connect_timeout = 1s) {
  client_options options;
  options.worker.connect_timeout = patience(connect_timeout);
  options.worker.heartbeat_interval = patience(500ms);
  options.worker.heartbeat_timeout = patience(3s);
  return options;
}

client_options calm() { return {.worker = patient({})}; }

/// A server in another process that publishes "churned".
class ServerDeath : public testing::Test {
 protected:
  ServerDeath() {
    url_ = server_.ask("serve");
    server_.ask("publish churned " + std::to_string(served_size) + " 7");
  }

  test_peer server_{"tcp"};
  std::string url_;
};

TEST_F(ServerDeath, EndsAReadInFlightBeforeAnyTimeOut) {
  if (goes_over_verbs()) GTEST_SKIP() << "a device reads the memory of a process that is stopped";
  client_options options;
  options.worker.operation_timeout = 60s;
  options.worker.heartbeat_timeout = 60s;
  options.context.share_memory = false;  // so that the server is asked
  client reader(url_, options);
  remote_region region = reader.open("churned");
  std::vector<std::byte> into(served_size);
  server_.process().stop();
  request reading = region.start_read_at(0, into);
  EXPECT_FALSE(reading.wait_for(20ms));
  const clock::time_point begin = clock::now();
  server_.process().kill();
  std::error_code ec;
  reading.wait(ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_LT(clock::now() - begin, patience(20s));
  reader.list({}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
}

TEST_F(ServerDeath, ShowsAsBadbitOfAStream) {
  client reader(url_, calm());
  istream in(reader.open("churned"));
  std::string some(1000, '\0');
  in.read(some.data(), 1000);
  EXPECT_TRUE(in.good());
  server_.process().kill();
  in.seekg(20'000'000);
  EXPECT_EQ(in.get(), EOF);
  EXPECT_TRUE(in.bad());
  EXPECT_FALSE(in.eof());
  EXPECT_EQ(in.error(), errc::connection_reset);
}

TEST_F(ServerDeath, InAQuestionNamesUrlAndCause) {
  client reader(url_, calm());
  server_.process().kill();
  try {
    reader.open("churned");
    FAIL();
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::connection_reset);
    EXPECT_NE(std::string(failed.what()).find(url_), std::string::npos) << failed.what();
    EXPECT_NE(std::string(failed.what()).find("churned"), std::string::npos) << failed.what();
  }
}

TEST_F(ServerDeath, OrItsAbsenceIsARefusal) {
  server_.process().kill();
  std::error_code ec;
  const client late(url_, quick(30s), ec);
  EXPECT_EQ(ec, errc::connection_refused);
}

TEST_F(ServerDeath, StoppedServerTimesOutWhoConnects) {
  server_.process().stop();
  const clock::time_point begin = clock::now();
  std::error_code ec;
  const client late(url_, quick(), ec);
  EXPECT_EQ(ec, errc::timed_out);
  EXPECT_LT(clock::now() - begin, patience(20s));
  server_.process().resume();
}

TEST_F(ServerDeath, StoppedServerIsDeadToWhoAsksIt) {
  client reader(url_, quick(30s));
  remote_region region = reader.open("churned");
  server_.process().stop();
  const clock::time_point begin = clock::now();
  std::error_code ec;
  reader.list({}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
  EXPECT_LT(clock::now() - begin, patience(20s));
  std::byte into{};
  region.read_at(0, {&into, 1}, {}, ec);
  EXPECT_EQ(ec, errc::connection_reset);
  server_.process().resume();
  client again(url_, calm());
  EXPECT_EQ(again.list().size(), 1U);
}

TEST_F(ServerDeath, WithdrawnNameFailsItsStreamsAndNoOther) {
  server_.ask("publish other 100000 8");
  client reader(url_, calm());
  istream gone(reader.open("churned"));
  remote_region kept = reader.open("other");
  EXPECT_NE(gone.get(), EOF);
  server_.ask("unpublish churned");
  gone.seekg(10'000'000);
  EXPECT_EQ(gone.get(), EOF);
  EXPECT_TRUE(gone.bad());
  EXPECT_EQ(gone.error(), errc::revoked);
  std::vector<std::byte> into(100'000);
  kept.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 8));
}

/// Kills clients that connect, list and open without end, or that transfer, after a random time.
void kill_clients(test_peer& server, const std::string& url, const std::string& what, int rounds) {
  std::mt19937 random(5);
  std::deque<test_peer> victims;
  for (int i = 0; i < rounds; ++i) {
    SCOPED_TRACE(i);
    if (!victims.empty()) victims.pop_front();
    while (victims.size() < 6) victims.emplace_back("tcp", "caller");
    test_peer& victim = victims.front();
    if (what == "ask") {
      victim.say("ask_on " + url);
    } else {
      victim.ask("client " + url);
      victim.ask("open_name churned read_write");
      victim.say("churn " + what + " 1048576 4");
    }
    ASSERT_TRUE(victim.process().read_line(patience(30s)));
    std::this_thread::sleep_for(
        std::chrono::microseconds(std::uniform_int_distribution<int>(0, 15'000)(random)));
    const bool stopped = i % 2 == 1;
    if (stopped) server.process().stop();
    victim.process().kill();
    if (stopped) server.process().resume();
    ASSERT_TRUE(server.process().running()) << "the server died of its client's death";
  }
  victims.clear();
  client healthy(url, calm());
  std::vector<std::byte> into(65536);
  healthy.open("kept").read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 9));
  // The dead are noticed.
  std::string clients;
  for (const auto until = clock::now() + patience(20s); clients != "1" && clock::now() < until;) {
    std::this_thread::sleep_for(20ms);
    clients = server.ask("clients");
  }
  EXPECT_EQ(clients, "1");
}

TEST_F(ServerDeath, IsNotThatOfClientsThatAreKilledWhileTheyAsk) {
  server_.ask("publish kept 65536 9");
  kill_clients(server_, url_, "ask", 40);
}

TEST_F(ServerDeath, IsNotThatOfClientsThatAreKilledWhileTheyRead) {
  server_.ask("publish kept 65536 9");
  kill_clients(server_, url_, "read", 40);
}

TEST_F(ServerDeath, IsNotThatOfClientsThatAreKilledWhileTheyWrite) {
  server_.ask("publish kept 65536 9");
  kill_clients(server_, url_, "write", 40);
}

TEST(SeveralWorkers, OutliveClientsThatAreKilled) {
  for (const char* what : {"ask", "read", "write"}) {
    SCOPED_TRACE(what);
    test_peer server("tcp");
    const std::string url = server.ask("serve " + at_port() + " 3");
    server.ask("publish churned " + std::to_string(served_size) + " 7");
    server.ask("publish kept 65536 9");
    kill_clients(server, url, what, 24);
  }
}

TEST_F(ServerDeath, OutOfDescriptorsHarmsOnlyNewClients) {
  client old(url_, calm());
  remote_region region = old.open("churned");
  std::vector<std::byte> into(65536);
  region.read_at(0, into);
  server_.ask("leave_files 0");
  std::error_code ec;
  const client refused(url_, quick(), ec);
  EXPECT_TRUE(ec);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 7));
  server_.ask("free_files");
  client later(url_, calm());
  EXPECT_EQ(later.list().size(), 1U);
}

}  // namespace
}  // namespace ucx::test
