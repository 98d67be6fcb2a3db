// Processes that say nothing for a while: stopped ones, which may go on, are told from dead ones by
// the time that their peer is willing to wait, and only while it waits for something.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/test_peer.hpp"
#include "support/transports/network.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/fstream.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

constexpr std::size_t silent_size = std::size_t{64} << 20U;

class Silence : public testing::Test {
 protected:
  static worker_options patient_for(std::chrono::milliseconds silence) {
    worker_options options;
    options.connect_timeout = 60s;
    options.heartbeat_interval = patience(silence) / 4;
    options.heartbeat_timeout = patience(silence);
    options.close_timeout = patience(silence);
    return options;
  }

  test_peer owner_{"tcp"};
  const socket_address where_ = owner_.listen();
  const remote_descriptor descriptor_ = owner_.allocate(silent_size);
  context context_{over_network()};
  worker worker_{context_, patient_for(3s)};  // a busy machine does not run a process for less
};

TEST_F(Silence, OfAStoppedOwnerIsNoMatterWhileNothingIsAskedOfIt) {
  endpoint connection(worker_, where_);
  remote_region region(connection, descriptor_, answered_by_the_owner());
  owner_.process().stop();
  for (const auto until = clock::now() + patience(5s); clock::now() < until;) {
    worker_.progress();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_FALSE(connection.status());
  owner_.process().resume();
  std::vector<std::byte> into(5000);
  region.read_at(77, into);
  EXPECT_TRUE(holds_pattern(into, 1, 77));
}

TEST_F(Silence, ShorterThanTheTimeOutIsForgiven) {
  const worker reader(context_, patient_for(5s));
  endpoint connection(reader, where_);
  remote_region region(connection, descriptor_, answered_by_the_owner());
  std::vector<std::byte> into(5000);
  for (int round = 0; round < 5; ++round) {  // all together are longer
    owner_.process().stop();
    request read = region.start_read_at(77, into);
    EXPECT_FALSE(read.wait_for(patience(1200ms)));
    owner_.process().resume();
    read.wait();
    EXPECT_TRUE(holds_pattern(into, 1, 77));
  }
}

TEST_F(Silence, OfThisProcessIsNotBlamedOnThePeer) {
  endpoint connection(worker_, where_);
  remote_region region(connection, descriptor_, answered_by_the_owner());
  std::vector<std::byte> into(1U << 20U);
  request read = region.start_read_at(77, into);
  // As if this process had been stopped, or had computed: the answer has been here for long.
  std::this_thread::sleep_for(patience(5s));
  read.wait();
  EXPECT_TRUE(holds_pattern(into, 1, 77));
}

TEST_F(Silence, EndsAFlushToo) {
  endpoint connection(worker_, where_);
  remote_region region(connection, descriptor_, answered_by_the_owner());
  owner_.process().stop();
  region.write_at(10, pattern(100));
  const clock::time_point begin = clock::now();
  std::error_code ec;
  region.flush({}, ec);
  EXPECT_EQ(ec, errc::connection_reset) << ec.message();
  EXPECT_LT(clock::now() - begin, patience(20s));
  EXPECT_EQ(region.first_unconfirmed(), 10U);
  EXPECT_EQ(connection.status(), errc::connection_reset);
}

TEST_F(Silence, DoesNotKeepClosingFromEnding) {
  endpoint connection(worker_, where_);
  remote_region region(connection, descriptor_, answered_by_the_owner());
  owner_.process().stop();
  const std::vector<std::byte> from(silent_size);
  request write = region.start_write_at(0, from);
  const clock::time_point begin = clock::now();
  std::error_code ec;
  connection.close(close_mode::flush, ec);
  EXPECT_TRUE(ec == errc::timed_out || ec == errc::connection_reset) << ec.message();
  write.wait(ec);
  EXPECT_TRUE(ec) << "it can not have reached an owner that is stopped";
  EXPECT_LT(clock::now() - begin, patience(20s));
}

TEST_F(Silence, WhileConnectingEndsAtTheConnectDeadline) {
  owner_.process().stop();
  endpoint_options options;
  options.connect_timeout = 300ms;
  std::error_code ec;
  const clock::time_point begin = clock::now();
  const endpoint connection(worker_, where_, std::move(options), ec);
  EXPECT_EQ(ec, errc::timed_out) << ec.message();
  EXPECT_LT(clock::now() - begin, patience(20s));
  // Whoever knocked and went away again does the owner no harm.
  owner_.process().resume();
  const worker calm(context_, patient({}));
  const endpoint again(calm, where_);
  remote_region region(again, descriptor_, answered_by_the_owner());
  std::vector<std::byte> into(100);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into, 1));
}

TEST_F(Silence, OfAReaderDoesNotHoldUpTheOthers) {
  const std::string churned = owner_.ask("allocate 33554432 read_write 7");
  test_peer stopped("tcp", "caller");
  stopped.ask("connect " + to_string(where_));
  stopped.ask("open " + churned);
  stopped.say("churn read 1048576 8");
  ASSERT_TRUE(stopped.process().read_line(patience(30s)));
  stopped.process().stop();
  const worker calm(context_, patient({}));
  endpoint connection(calm, where_);
  remote_region region(connection, descriptor_, answered_by_the_owner());
  std::vector<std::byte> into(1U << 20U);
  for (std::uint64_t i = 0; i < 50; ++i) {
    region.read_at(i << 20U, into);
    ASSERT_TRUE(holds_pattern(into, 1, i << 20U));
  }
  stopped.process().resume();
  stopped.process().kill();
  region.read_at(0, into);
}

TEST_F(Silence, OfAReaderDoesNotKeepTheOwnerFromEnding) {
  test_peer reader("tcp", "caller");
  reader.ask("connect " + to_string(where_));
  reader.ask("open " + to_hex(descriptor_.encode()));
  reader.say("churn read 1048576 8");
  ASSERT_TRUE(reader.process().read_line(patience(30s)));
  reader.process().stop();
  owner_.say("quit");
  const std::optional<int> status = owner_.process().wait(patience(20s));
  ASSERT_TRUE(status) << "the owner waits for a reader that is stopped";
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << "status " << *status;
}

// One lane after the other would take sixteen times as long as the client waits for one.
TEST(SilentServer, IsWaitedForOnceWhereAStreamWithLanesIsClosed) {
  const temporary_directory directory;
  test_peer owner("tcp");
  const std::string url = owner.ask("serve");
  owner.ask("publish_file file " + directory.make("file", std::string(100'000, 'x')).string());
  client_options options;
  options.worker.close_timeout = 2s;
  options.worker = patient(options.worker);
  client own(url, options);
  std::optional<ifstream> in(std::in_place, own, "file", std::ios::in,
                             stream_options{.connections = 16});
  ASSERT_NE(in->get(), EOF) << in->error_message();
  ASSERT_EQ(in->rdbuf()->statistics().connections, 16U);
  owner.process().stop();
  const clock::time_point begin = clock::now();
  in.reset();
  EXPECT_LT(clock::now() - begin, patience(15s));
  owner.process().resume();
}

}  // namespace
}  // namespace ucx::test
