// What futures and coroutines get of messages, of the byte stream, of closing and of notifications;
// and requests that outlive everything else.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include "support/handlers/fire.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class AwaitedMessage : public testing::Test {
 protected:
  message_info get(std::future<message_info> future) {
    if (!both_.network().run_until(
            [&] { return future.wait_for(0s) == std::future_status::ready; })) {
      throw std::runtime_error("the future is not ready");
    }
    return future.get();
  }

  simulated_messages both_;
  std::vector<std::byte> into_ = blank(1000);
};

TEST_F(AwaitedMessage, ItsFutureTellsTagAndLength) {
  std::future<message_info> received = both_.receiver().start_receive({7, 0xff}, into_).to_future();
  EXPECT_EQ(get(both_.sender.start_send(0x107, pattern(600)).to_future()), message_info());
  const message_info info = get(std::move(received));
  EXPECT_EQ(info.tag, 0x107U);
  EXPECT_EQ(info.length, 600U);
  EXPECT_TRUE(holds_pattern(std::span(into_).first(600)));
  // Of what is done already, too.
  both_.sender.send(7, pattern(5));
  both_.settle();
  request done = both_.receiver().start_receive(7, into_);
  ASSERT_FALSE(both_.outcome(done));
  EXPECT_EQ(std::move(done).to_future().get().length, 5U);
}

TEST_F(AwaitedMessage, ItsFutureThrowsWhereItDidNotFit) {
  std::future<message_info> received = both_.receiver().start_receive(7, into_).to_future();
  both_.sender.send(7, pattern(1001));
  try {
    get(std::move(received));
    FAIL();
  } catch (const ucx::error& failed) {
    EXPECT_EQ(failed.code(), errc::message_truncated);
  }
}

TEST_F(AwaitedMessage, FutureOfTheByteStreamTellsHowMany) {
  endpoint back = both_.back();
  std::future<message_info> received =
      back.start_stream_receive(into_, stream_amount::some).to_future();
  EXPECT_EQ(get(both_.sender.start_stream_send(pattern(77)).to_future()), message_info());
  EXPECT_EQ(get(std::move(received)).length, 77U);
}

TEST_F(AwaitedMessage, FutureOfClosingIsReadyWhenItIsClosed) {
  std::future<message_info> closed = both_.sender.start_close().to_future();
  EXPECT_EQ(get(std::move(closed)), message_info());
  EXPECT_EQ(both_.sender.status(), errc::closed);
}

fire receive_all(simulated_messages& both, endpoint& back, std::span<std::byte> into,
                 std::vector<message_info>& received, std::error_code& last) {
  received.push_back(co_await both.receiver().start_receive(1, into));
  received.push_back(co_await back.start_stream_receive(into, stream_amount::all));
  received.push_back(co_await back.start_send(2, into));
  try {
    co_await both.receiver().start_receive(1, into.first(1));
  } catch (const ucx::error& failed) {
    last = failed.code();
  }
}

TEST_F(AwaitedMessage, CoroutineGetsTagAndLength) {
  endpoint back = both_.back();
  std::vector<message_info> received;
  std::error_code last;
  receive_all(both_, back, into_, received, last);
  both_.sender.send(1, pattern(10));
  both_.sender.stream_send(pattern(into_.size()));
  both_.sender.send(1, pattern(2));
  ASSERT_TRUE(both_.network().run_until([&] { return static_cast<bool>(last); }));
  ASSERT_EQ(received.size(), 3U);
  EXPECT_EQ(received[0].tag, 1U);
  EXPECT_EQ(received[0].length, 10U);
  EXPECT_EQ(received[1].length, into_.size());
  EXPECT_EQ(received[2], message_info());
  EXPECT_EQ(last, errc::message_truncated);
}

/// A region of the sender's process.
class RegionOfTheSender : public AwaitedMessage {
 protected:
  /// Returns the receiver's handle of it, over the connection that the sender has made.
  remote_region open() { return {both_.back(), exposed_.descriptor()}; }
  /// Drops the receiver's worker, but for what keeps it.
  void drop_receiver() {
    both_.pair.owner_process.on_pump({});
    const worker gone = std::move(both_.receiver());
  }

  std::vector<std::byte> owned_ = pattern(1000);
  memory_region exposed_{both_.pair.reader_context, std::span(owned_), access::read_write};
};

TEST_F(RegionOfTheSender, FutureOfANotificationIsReadyWhenItIsSaid) {
  notification said;
  std::future<message_info> heard = exposed_.start_wait_notify(both_.pair.reader, said).to_future();
  remote_region region = open();
  get(region.start_notify(42).to_future());
  get(std::move(heard));
  EXPECT_EQ(said.value, 42U);
}

TEST_F(RegionOfTheSender, IsLeftByTheRequestThatOutlivesAllElse) {
  using start = std::function<request(remote_region&)>;
  const std::vector<start> starts = {
      [&](remote_region& region) { return region.start_read_at(0, into_); },
      [&](remote_region& region) { return region.start_write_at(0, into_); },
      [&](remote_region& region) { return region.start_flush(); },
      [&](remote_region& region) { return region.start_notify(1); },
  };
  std::vector<request> left;
  {
    remote_region region = open();
    for (const start& each : starts) left.push_back(each(region));
  }
  drop_receiver();
  left.pop_back();  // in flight
  for (request& each : left) EXPECT_FALSE(both_.outcome(each)) << each.description();
}

}  // namespace
}  // namespace ucx::test
