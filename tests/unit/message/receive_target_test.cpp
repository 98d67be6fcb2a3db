// The places of receives, by each blocking call.
#include "ucx/receive_target.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <system_error>
#include <type_traits>
#include <vector>

#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/message.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

// Memory that is only read is no place, nor is what dies at the call.
static_assert(std::is_convertible_v<std::vector<std::byte>&, receive_target>);
static_assert(!std::is_convertible_v<const std::vector<std::byte>&, receive_target>);
static_assert(!std::is_convertible_v<std::vector<std::byte>, receive_target>);
static_assert(!std::is_convertible_v<buffer&, receive_target>);
static_assert(std::is_trivially_copyable_v<receive_target>);

// A count of before is a number: braces are none.
template <class Receives, class Place, class... What>
concept takes_braces = requires(Receives& from, Place& made, What... what) {
  from.start_receive(what..., made, {});
};
static_assert(!takes_braces<endpoint, buffer, tag_match>);
static_assert(!takes_braces<endpoint, message_parts, tag_match>);
static_assert(!takes_braces<worker, buffer, tag_match>);
static_assert(!takes_braces<worker, message_parts, tag_match>);
static_assert(!takes_braces<message, buffer> && !takes_braces<message, message_parts>);

enum class received_by { of_anybody, of_one_peer, of_a_held_message };

/// Two processes, and a blocking receive of one of them.
struct blocking_receives : simulated_messages {
  explicit blocking_receives(received_by which) : of(which) {}

  message_info receive(const payload& what, const receive_target& into) {
    request send = sender.start_send(7, what);
    message_info came;
    if (of == received_by::of_anybody) came = receiver().receive(7, into);
    if (of == received_by::of_one_peer) came = back_.receive(7, into);
    if (of == received_by::of_a_held_message) {
      message held = take(7);
      came = held.info();
      held.receive(into);
    }
    EXPECT_FALSE(outcome(send));
    return came;
  }

  received_by of;

 private:
  endpoint back_ = back();
};

void receives_into_each_form(received_by of, std::size_t size) {
  blocking_receives both(of);
  const std::vector<std::byte> bytes = pattern(size);
  std::vector<std::byte> into(size);
  EXPECT_EQ(both.receive(bytes, into), (message_info{7, size}));
  EXPECT_EQ(into, bytes);

  std::vector<std::byte> apart(size);
  const std::array<std::span<std::byte>, 3> scattered{
      std::span(apart).first(3), {}, std::span(apart).subspan(3)};
  EXPECT_EQ(both.receive(bytes, scattered), (message_info{7, size}));
  EXPECT_EQ(apart, bytes);

  buffer made;
  EXPECT_EQ(both.receive(bytes, {made, size}), (message_info{7, size}));
  EXPECT_TRUE(std::ranges::equal(made.bytes(), bytes));

  buffer_pool pool({.size = size, .count = 1});
  for (int round = 0; round < 2; ++round) {  // the only buffer comes back for the second one
    EXPECT_EQ(both.receive(bytes, {made, pool}), (message_info{7, size}));
    EXPECT_TRUE(pool.owns(made));
    EXPECT_TRUE(std::ranges::equal(made.bytes(), bytes));
  }

  const std::array<std::span<const std::byte>, 2> sent{std::span(bytes).first(3), bytes};
  message_parts parts;
  const std::size_t length = 24 + 3 + size;  // eight for each, and eight for both
  EXPECT_EQ(both.receive(payload::parts(sent), {parts, length}), (message_info{7, length}));
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_TRUE(std::ranges::equal(parts[0], sent[0]));
  EXPECT_TRUE(std::ranges::equal(parts[1], sent[1]));
}

TEST(ReceiveTarget, IsFilledInEachFormByEachBlockingCall) {
  for (const std::size_t size : {10U, 300'000U}) {
    receives_into_each_form(received_by::of_anybody, size);
    receives_into_each_form(received_by::of_one_peer, size);
    receives_into_each_form(received_by::of_a_held_message, size);
  }
}

TEST(ReceiveTarget, MemoryOfTheSendersKindIsForMessagesThatAreHeld) {
  simulated_messages both;
  endpoint back = both.back();
  const memory_resources known;
  buffer made(5);
  std::error_code ec;
  EXPECT_EQ(both.receiver().receive(7, {made, known, 1000}, {}, ec), message_info());
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_EQ(back.receive(7, {made, known, 1000}, {}, ec), message_info());
  EXPECT_EQ(ec, errc::not_supported);
  EXPECT_EQ(made.size(), 5U);
  const request refused = back.start_receive(7, {made, known, 1000});
  EXPECT_NE(refused.description().find("take the message"), std::string::npos)
      << refused.description();
  for (const std::size_t size : {100U, 300'000U}) {
    const std::vector<std::byte> bytes = pattern(size);
    request send = both.sender.start_send(7, bytes);
    message held = both.take(7);
    held.receive({made, known, size});
    EXPECT_TRUE(std::ranges::equal(made.bytes(), bytes));
    EXPECT_FALSE(both.outcome(send));
  }
}

TEST(ReceiveTarget, StaysWhereASecondReceiveIsRefused) {
  for (const bool is_whole : {true, false}) {
    simulated_messages both;
    const memory_resources known;
    const std::vector<std::byte> bytes = pattern(300'000);
    request send = both.sender.start_send(7, bytes);
    message held = both.take(7);
    buffer made;
    request receive = held.start_receive({made, known, bytes.size()});
    if (is_whole) {
      EXPECT_FALSE(both.outcome(receive));
    }
    const std::byte* const place = made.data();
    const request twice = held.start_receive({made, known, bytes.size()});
    EXPECT_EQ(twice.error(), errc::invalid_argument);
    EXPECT_EQ(made.data(), place);
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_FALSE(both.outcome(send));
    EXPECT_TRUE(std::ranges::equal(made.bytes(), bytes));
  }
}

TEST(ReceiveTarget, ThatIsTooShortLeavesAHeldPayload) {
  simulated_messages both;
  const std::vector<std::byte> bytes = pattern(10);
  both.sender.send(7, bytes);
  message held = both.take(7);
  ASSERT_TRUE(held.has_payload());
  std::vector<std::byte> into(10);
  std::error_code ec;
  held.receive(std::span(into).first(9), {}, ec);
  EXPECT_EQ(ec, errc::message_truncated);
  EXPECT_EQ(into, std::vector<std::byte>(10));
  held.receive(into);
  EXPECT_EQ(into, bytes);
}

TEST(ReceiveTarget, WithoutBytesFitsAnEmptyMessageAlone) {
  simulated_messages both;
  request receive = both.receiver().start_receive(7, {});
  both.sender.send(7, {});
  EXPECT_FALSE(both.outcome(receive));
  receive = both.receiver().start_receive(7, {});
  both.sender.send(7, pattern(1));
  EXPECT_EQ(both.outcome(receive), errc::message_truncated);
  EXPECT_EQ(receive.received(), (message_info{7, 1}));
}

TEST(ReceiveTarget, KeepsItsOldMemoryWhereNoMessageFits) {
  simulated_messages both;
  buffer made(5);
  std::error_code ec;
  both.receiver().receive(7, {made, 10}, {.timeout = 1ms}, ec);
  EXPECT_EQ(ec, errc::timed_out);
  both.sender.send(7, pattern(11));
  EXPECT_EQ(both.receiver().receive(7, {made, 10}, {}, ec), (message_info{7, 11}));
  EXPECT_EQ(ec, errc::message_truncated);
  EXPECT_EQ(made.size(), 5U);
}

}  // namespace
}  // namespace ucx::test
