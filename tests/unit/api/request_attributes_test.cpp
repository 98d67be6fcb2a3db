// The facts about an operation, as values.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/request.hpp"

namespace ucx::test {
namespace {

request_attributes facts_of(operation_kind kind, std::uint64_t size, const endpoint& over) {
  return {.kind = kind, .size = size, .connection = over.id(), .peer = over.peer()};
}

TEST(RequestAttributes, OfNothingAreNone) {
  EXPECT_EQ(request().attributes(), request_attributes());
  served_region served(100);
  std::vector<std::byte> into(101);
  const request refused = served.region.start_read_at(0, into);
  EXPECT_TRUE(refused.error());
  EXPECT_EQ(refused.attributes().kind, operation_kind::none);
}

TEST(RequestAttributes, OfARegionsOperationsSayWhatTheyDo) {
  served_region served(1000);
  served.connection.wait_connected();
  served.pair.owner_process.stop();
  const endpoint& over = served.connection;
  std::vector<std::byte> bytes(100);
  request read = served.region.start_read_at(7, bytes);
  EXPECT_EQ(read.attributes(), facts_of(operation_kind::read, 100, over));
  const request write = served.region.start_write_at(0, std::span(bytes).first(30));
  EXPECT_EQ(write.attributes(), facts_of(operation_kind::write, 30, over));
  const request atomic = served.region.start_atomic(8, {.operation = atomic_operation::load}, {});
  EXPECT_EQ(atomic.attributes(), facts_of(operation_kind::atomic, 8, over));
  const request notify = served.region.start_notify(1);
  EXPECT_EQ(notify.attributes(), facts_of(operation_kind::notify, 0, over));
  const request flush = served.region.start_flush();
  EXPECT_EQ(flush.attributes(), facts_of(operation_kind::flush, 0, over));
  const std::array<read_piece, 2> pieces{{{0, std::span(bytes).first(10)}, {50, bytes}}};
  const request batch = served.region.start_read_batch(pieces);
  EXPECT_EQ(batch.attributes(), facts_of(operation_kind::read, 110, over));
  const request every = served.pair.reader.start_flush();
  EXPECT_EQ(every.attributes(), (request_attributes{.kind = operation_kind::flush}));
  notification into;
  const request wait = served.exposed.start_wait_notify(served.pair.owner, into);
  EXPECT_EQ(wait.attributes(), (request_attributes{.kind = operation_kind::wait_notify}));
  served.pair.owner_process.resume();
  read.wait();
  EXPECT_EQ(read.attributes(), facts_of(operation_kind::read, 100, over)) << "it has ended";
}

TEST(RequestAttributes, OfMessagesSayWhatTheyDo) {
  simulated_messages both;
  const endpoint& over = both.sender;
  const std::vector<std::byte> bytes = pattern(300'000);
  request send = both.sender.start_send(1, bytes, {.until = send_until::matched});
  EXPECT_EQ(send.attributes(), facts_of(operation_kind::send, 300'000, over));
  std::vector<std::byte> into(400'000);
  request receive = both.receiver().start_receive(1, into);
  EXPECT_EQ(receive.attributes().kind, operation_kind::receive);
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_EQ(receive.attributes().size, 300'000U);
  EXPECT_NE(receive.attributes().connection, 0U) << "it is known by now";
  request waiting = both.receiver().start_receive(2, into);
  EXPECT_EQ(waiting.attributes(), (request_attributes{.kind = operation_kind::receive}));
  endpoint back = both.back();
  request stream = back.start_stream_receive(into, stream_amount::some);
  EXPECT_EQ(stream.attributes(), facts_of(operation_kind::stream_receive, 0, back));
  request streamed = both.sender.start_stream_send(std::span(bytes).first(10'000));
  EXPECT_EQ(streamed.attributes().kind, operation_kind::stream_send);
  EXPECT_FALSE(both.outcome(stream));
  EXPECT_EQ(stream.attributes().size, stream.received().length);
}

}  // namespace
}  // namespace ucx::test
