// Short messages go as copies, without an operation, where nothing is in the way.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "support/simulated/simulated_messages.hpp"
#include "ucp/ucp_api.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// A peer that takes nothing, behind a socket that holds little.
simulated_pair_options small_socket() {
  simulated_pair_options options;
  options.link.socket_buffer = 2000;
  return options;
}

TEST(ShortMessage, IsTheCallersAgainWhenTheCallReturns) {
  simulated_messages both;
  std::vector<std::byte> bytes = pattern(1024);
  std::array<std::byte, 64> header = {};
  header.fill(std::byte{7});
  ASSERT_TRUE(both.sender.start_send(1, bytes).done());
  ASSERT_TRUE(both.sender.start_send(active_message{2, header}, bytes).done());
  ASSERT_TRUE(both.sender.start_stream_send(bytes).done());
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  header.fill(std::byte{0});

  std::vector<std::byte> into(1024);
  request tagged = both.receiver().start_receive(1, into);
  ASSERT_FALSE(both.outcome(tagged));
  EXPECT_EQ(into, pattern(1024));
  std::fill(into.begin(), into.end(), std::byte{0});
  endpoint back = both.back();
  request streamed = back.start_stream_receive(into, stream_amount::all);
  ASSERT_FALSE(both.outcome(streamed));
  EXPECT_EQ(into, pattern(1024));
}

TEST(ShortMessage, KeepsItsHeaderAtEveryLength) {
  simulated_messages both;
  for (const std::size_t header : {0U, 1U, 63U, 64U, 65U, 200U}) {
    for (const std::size_t size : {0U, 1U, 1023U, 1024U, 1025U}) {
      const std::vector<std::byte> said = pattern(header);
      const std::vector<std::byte> bytes = pattern(size);
      std::vector<std::byte> heard;
      std::vector<std::byte> came;
      both.receiver().on_message(9, [&](message arrived) {
        heard.assign(arrived.header().begin(), arrived.header().end());
        came.assign(arrived.data().begin(), arrived.data().end());
      });
      request send = both.sender.start_send(active_message{9, said}, bytes);
      both.settle();
      EXPECT_FALSE(both.outcome(send));
      EXPECT_EQ(heard, said) << header << " and " << size;
      EXPECT_EQ(came, bytes) << header << " and " << size;
    }
  }
}

TEST(ShortMessage, WaitsBehindLongerOnesThatWait) {
  simulated_pair_options options;
  options.owner_worker.message_window = 64U << 10U;
  simulated_messages both(options);
  const std::vector<std::byte> bytes = pattern(20000);
  std::vector<request> sends;
  for (std::uint64_t i = 0; i < 10; ++i) sends.push_back(both.sender.start_send(i, bytes));
  ASSERT_FALSE(sends.back().done());
  const std::vector<std::byte> last = pattern(8);
  sends.push_back(both.sender.start_send(10, last));
  EXPECT_FALSE(sends.back().done());  // else it would overtake
  for (std::uint64_t i = 0; i <= 10; ++i) {
    std::vector<std::byte> into(bytes.size());
    request receive = both.receiver().start_receive(tag_match::any(), into);
    ASSERT_FALSE(both.outcome(receive));
    EXPECT_EQ(receive.received().tag, i);
  }
}

TEST(ShortMessage, IsNotLostWhereUcxHasToWait) {
  simulated_messages both(small_socket());
  both.pair.owner_process.stop();
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::vector<std::byte> bytes = pattern(100 + i);  // gone when UCX sends it
    ASSERT_TRUE(both.sender.start_send(i, bytes).done());
  }
  both.pair.owner_process.resume();
  for (std::uint64_t i = 0; i < 100; ++i) {
    std::vector<std::byte> into(100 + i);
    request receive = both.receiver().start_receive(tag_match::any(), into);
    ASSERT_FALSE(both.outcome(receive));
    EXPECT_EQ(receive.received().tag, i);
    EXPECT_EQ(into, pattern(100 + i));
  }
}

TEST(ShortMessage, GoesWithoutACopyWhereUcxTakesItAtOnce) {
  simulated_messages both;
  const std::vector<std::byte> bytes = pattern(100);
  const std::uint64_t before = both.pair.reader_process.count(call::am_send);
  ASSERT_TRUE(both.sender.start_send(1, bytes).done());
  EXPECT_EQ(both.pair.reader_process.count(call::am_send), before + 1);
  // Where it would have to wait it is asked again, with a copy.
  both.network().faults().fail(call::am_send, UCS_ERR_NO_RESOURCE);
  ASSERT_TRUE(both.sender.start_send(2, bytes).done());
  EXPECT_EQ(both.pair.reader_process.count(call::am_send), before + 3);
  for (const std::uint64_t tag : {1U, 2U}) {
    std::vector<std::byte> into(100);
    request receive = both.receiver().start_receive(tag, into);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_EQ(into, bytes);
  }
}

TEST(ShortMessage, ThatUcxRefusesEndsTheConnection) {
  simulated_messages both;
  const std::vector<std::byte> bytes = pattern(100);
  both.network().faults().fail(call::am_send, UCS_ERR_CONNECTION_RESET);
  EXPECT_TRUE(both.sender.start_send(1, bytes).done());  // left to the connection, as a copy is
  both.settle();
  EXPECT_EQ(both.sender.status(), errc::connection_reset);
}

TEST(ShortMessage, HasTagsOfEveryWidth) {
  simulated_messages both;
  const std::vector<std::byte> bytes = pattern(10);
  for (const std::uint64_t tag : {std::uint64_t{0}, std::uint64_t{0xffffffff},
                                  std::uint64_t{0x100000000}, ~std::uint64_t{0}}) {
    both.sender.send(tag, bytes);
    std::vector<std::byte> into(10);
    request receive = both.receiver().start_receive(tag, into);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_EQ(receive.received().tag, tag);
  }
}

/// A brief parcel gives little credit: the rest goes with the next ones.
TEST(ShortMessage, GivesAllRoomBackWhereBothSidesTalk) {
  simulated_pair_options options;
  options.reader_worker.message_window = 512U << 10U;
  simulated_messages both(options);
  endpoint back = both.back();
  const std::vector<std::byte> long_one = pattern(60'000);
  const std::vector<std::byte> short_one = pattern(8);
  std::vector<std::byte> into(long_one.size());
  for (int i = 0; i < 100; ++i) {
    for (int two = 0; two < 2; ++two) {  // take more units than one brief parcel gives back
      request sent = back.start_send(1, long_one);
      request receive = both.sender.start_receive(1, into);
      ASSERT_FALSE(both.outcome(receive)) << i;
      ASSERT_FALSE(both.outcome(sent)) << i;
    }
    both.sender.send(2, short_one);
    request answer = both.receiver().start_receive(2, into);
    ASSERT_FALSE(both.outcome(answer)) << i;
  }
}

TEST(ShortMessage, FailsOverALostConnection) {
  simulated_messages both;
  both.sender.close(close_mode::abort);
  const std::vector<std::byte> bytes = pattern(8);
  request send = both.sender.start_send(1, bytes);
  EXPECT_TRUE(both.outcome(send));
}

TEST(MessagePeer, AndItsRequestsMayOutliveTheirWorker) {
  simulated_messages both;
  std::optional<worker> local(std::in_place, both.pair.owner_context);
  both.pair.owner_process.on_pump([&] {
    both.pair.owner.progress();
    if (local) local->progress();
  });
  endpoint to(both.pair.reader, local->address());
  to.wait_connected();
  to.send(5, pattern(10));
  to.send(6, pattern(10));
  ASSERT_TRUE(both.network().run_until([&] { return local->probe(6).has_value(); }));
  std::vector<std::byte> into(10);
  std::optional<message> first = local->take(5);
  request taken = first->start_receive(into);
  endpoint back = first->peer();
  first.reset();
  const std::vector<std::byte> bytes = pattern(300'000);
  request send = back.start_send(7, bytes);
  request receive = back.start_receive(8, into);
  local.reset();
  EXPECT_FALSE(back.status());
  EXPECT_EQ(into, pattern(10));
  both.pair.owner_process.on_pump([&] { both.pair.owner.progress(); });
}

TEST(Clock, OfTheLastTickCountsFromTheSameBeginning) {
  detail::ucp_api& api = detail::real_ucp();
  const auto before = api.now();
  const auto told = api.now_or_soon();
  // A machine that is busy may be late with its ticks.
  EXPECT_GT(told, before - 10s);
  EXPECT_LT(told, api.now() + 10s);
}

}  // namespace
}  // namespace ucx::test
