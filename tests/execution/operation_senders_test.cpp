// The senders of every kind of operation, and their values.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <stop_token>
#include <tuple>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/bytes/untouched.hpp"
#include "support/execution/own_names.hpp"
#include "support/execution/recorder.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/execution.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

struct region_operations : served_region {
  region_operations() : served_region(4096) { connection.wait_connected(); }
  template <class Sender>
  auto wait(Sender&& sender) {
    return sync_wait(pair.reader, std::forward<Sender>(sender));
  }
};

TEST(OperationSender, OwnsTheBufferThatItReadsInto) {
  region_operations served;
  buffer into(1000);
  const std::byte* const memory = into.data();
  auto read = served.wait(async_read_at(served.region, 0, std::move(into)));
  ASSERT_TRUE(read);
  const buffer& filled = std::get<0>(*read);
  EXPECT_EQ(filled.data(), memory);
  EXPECT_TRUE(holds_pattern(filled.bytes()));
}

TEST(OperationSender, OwnsTheBufferThatItWrites) {
  region_operations served;
  buffer from(100);
  std::memset(from.data(), 7, from.size());
  const auto written = served.wait(async_write_at(served.region, 50, std::move(from)));
  EXPECT_TRUE(std::get<0>(written.value()));
  EXPECT_TRUE(served.wait(async_flush(served.region)));
  EXPECT_EQ(served.memory[50], std::byte{7});
  EXPECT_EQ(served.memory[149], std::byte{7});
}

TEST(OperationSender, ReadsAndWritesBatches) {
  region_operations served;
  const std::vector<std::byte> from = pattern(20, 5);
  const std::array<write_piece, 2> writes{write_piece{0, std::span(from).first(10)},
                                          write_piece{100, std::span(from).last(10)}};
  EXPECT_TRUE(served.wait(async_write_batch(served.region, writes)));
  EXPECT_TRUE(served.wait(async_flush(served.connection)));
  std::vector<std::byte> into(20);
  const std::array<read_piece, 2> reads{read_piece{0, std::span(into).first(10)},
                                        read_piece{100, std::span(into).last(10)}};
  EXPECT_TRUE(served.wait(async_read_batch(served.region, reads)));
  EXPECT_EQ(into, from);
}

TEST(OperationSender, TellsTheOldNumberOfAnAtomicAccess) {
  region_operations served;
  std::uint64_t number = 40;
  std::memcpy(served.memory.data(), &number, sizeof(number));
  const auto old =
      served.wait(async_fetch<std::uint64_t>(served.region, 0, atomic_operation::add, 2));
  EXPECT_EQ(std::get<0>(old.value()), 40U);
  const auto found = served.wait(async_compare_exchange<std::uint64_t>(served.region, 0, 42, 1));
  EXPECT_EQ(std::get<0>(found.value()), 42U);
  std::memcpy(&number, served.memory.data(), sizeof(number));
  EXPECT_EQ(number, 1U);
}

TEST(OperationSender, NotifiesAnOwnerWhoseSenderWaits) {
  region_operations served;
  const auto sender = async_wait_notify(served.pair.owner, served.exposed);
  record told;
  auto waiting = sender.connect(recorder(told));
  waiting.start();
  EXPECT_EQ(told.calls, 0);
  EXPECT_TRUE(served.wait(async_notify(served.region, 17)));
  EXPECT_TRUE(served.network().run_until([&] { return told.calls > 0; }));
  EXPECT_EQ(told.how, completion::value);
  EXPECT_TRUE(served.wait(async_notify(served.region, 18)));
  const auto taken = sync_wait(served.pair.owner, sender);
  EXPECT_EQ(std::get<0>(taken.value()).value, 18U);
}

TEST(OperationSender, SendsAndReceives) {
  simulated_messages both;
  std::vector<std::byte> into = blank(1000);
  EXPECT_TRUE(sync_wait(both.pair.reader, async_send(both.sender, 7, pattern(600))));
  auto got = sync_wait(both.receiver(), async_receive(both.receiver(), 7, into));
  EXPECT_EQ(std::get<0>(got.value()).length, 600U);
  EXPECT_TRUE(holds_pattern(std::span(into).first(600)));

  buffer owned(100);
  EXPECT_TRUE(sync_wait(both.pair.reader, async_send(both.sender, 8, std::move(owned))));
  message taken = both.take(8);
  got = sync_wait(both.receiver(), async_receive(both.receiver(), taken, into));
  EXPECT_EQ(std::get<0>(got.value()).length, 100U);

  endpoint back = both.back();
  EXPECT_TRUE(sync_wait(both.receiver(), async_send(back, 9, pattern(10))));
  got = sync_wait(both.pair.reader, async_receive(both.sender, tag_match::any(), into));
  EXPECT_EQ(std::get<0>(got.value()).tag, 9U);
}

TEST(OperationSender, MovesBytesOfTheStream) {
  simulated_messages both;
  endpoint back = both.back();
  std::vector<std::byte> into = blank(10);
  EXPECT_TRUE(sync_wait(both.pair.reader, async_stream_send(both.sender, pattern(10))));
  const auto got = sync_wait(both.receiver(), async_stream_receive(back, into, stream_amount::all));
  EXPECT_EQ(std::get<0>(got.value()).length, 10U);
  EXPECT_TRUE(holds_pattern(into));
}

TEST(OperationSender, ClosesAConnection) {
  simulated_messages both;
  EXPECT_TRUE(sync_wait(both.pair.reader, async_close(both.sender)));
  EXPECT_EQ(both.sender.status(), errc::closed);
}

TEST(OperationSender, TakesARequestThatIsUnderWay) {
  simulated_messages both;
  std::vector<std::byte> into = blank(10);
  request receive = both.receiver().start_receive(7, into);
  both.sender.send(7, pattern(4));
  const auto got = sync_wait(both.receiver(), as_sender(std::move(receive)));
  EXPECT_EQ(std::get<0>(got.value()).length, 4U);
  EXPECT_TRUE(sync_wait(both.receiver(), as_sender(request())));
}

TEST(OperationSender, StopsARequestThatIsUnderWay) {
  simulated_messages both;
  std::vector<std::byte> into = blank(10);
  record told;
  std::stop_source stop;
  auto state =
      as_sender(both.receiver().start_receive(7, into)).connect(recorder(told, stop.get_token()));
  state.start();
  EXPECT_EQ(told.calls, 0);
  stop.request_stop();
  EXPECT_TRUE(both.network().run_until([&] { return told.calls > 0; }));
  EXPECT_EQ(told.how, completion::stopped);
}

TEST(OperationSender, CancelsWhatIsUnderWayByAnEarlierStop) {
  simulated_messages both;
  std::vector<std::byte> into = blank(10);
  record told;
  std::stop_source stop;
  auto state =
      as_sender(both.receiver().start_receive(7, into)).connect(recorder(told, stop.get_token()));
  stop.request_stop();
  state.start();
  EXPECT_EQ(told.calls, 0);  // UCX has the memory
  EXPECT_TRUE(both.network().run_until([&] { return told.calls > 0; }));
  EXPECT_EQ(told.how, completion::stopped);
  both.sender.send(7, pattern(4), {.until = send_until::reusable});
  both.settle();
  EXPECT_TRUE(all_bytes_are(into, untouched));
}

TEST(OperationSender, KeepsAnOutcomeThatCameBeforeItsStop) {
  simulated_messages both;
  std::vector<std::byte> into = blank(10);
  record told;
  std::stop_source stop;
  request receive = both.receiver().start_receive(7, into);
  both.sender.send(7, pattern(4), {.until = send_until::reusable});
  EXPECT_TRUE(both.network().run_until([&] { return receive.done(); }));
  auto state = as_sender(std::move(receive)).connect(recorder(told, stop.get_token()));
  stop.request_stop();
  state.start();
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.how, completion::value);
}

TEST(OperationSender, RefusesARequestThatHasAHandler) {
  simulated_messages both;
  std::vector<std::byte> into = blank(10);
  request receive = both.receiver().start_receive(7, into);
  std::error_code ended;
  receive.then([&](std::error_code ec) { ended = ec; });
  record told;
  auto state = as_sender(std::move(receive)).connect(recorder(told));
  state.start();
  EXPECT_EQ(told.how, completion::error);
  EXPECT_EQ(told.code, errc::invalid_argument);
  both.settle();
  EXPECT_EQ(ended, errc::canceled);
}

TEST(OperationSender, IsMadeOfAnyCallThatReturnsARequest) {
  region_operations served;
  std::vector<std::byte> into(10);
  int calls = 0;
  auto sender = async_start(served.pair.reader, [&] {
    ++calls;
    return served.region.start_read_at(0, into);
  });
  EXPECT_EQ(calls, 0);
  EXPECT_TRUE(served.wait(std::move(sender)));
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(holds_pattern(into));
}

}  // namespace
}  // namespace ucx::test
