// The forms of what is sent, by each call, to a tag and to a handler.
#include "ucx/payload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "message/send_source.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"
#include "ucx/receive_target.hpp"
#include "wire/parts_table.hpp"

namespace ucx::test {
namespace {

using detail::message_kind;
using detail::send_source;

constexpr std::size_t most = 1U << 20U;

struct convertible {
  std::span<const std::byte> bytes;
  operator std::span<const std::byte>() const noexcept { return bytes; }
};

// A buffer has to be moved in, and text is no bytes.
static_assert(std::is_convertible_v<buffer&&, payload>);
static_assert(!std::is_convertible_v<buffer&, payload>);
static_assert(!std::is_convertible_v<std::string, payload>);
static_assert(std::is_trivially_copyable_v<payload>);

TEST(Payload, IsOneRunOfWhatConvertsToASpan) {
  std::vector<std::byte> grown(3);
  const std::array<std::byte, 3> fixed{};
  std::byte plain[3] = {};
  const auto begin_of = [](const payload& what) {
    const send_source source(7, what);
    EXPECT_TRUE(source.is_run());
    EXPECT_EQ(source.length(), 3U);
    return source.bytes().data();
  };
  EXPECT_EQ(begin_of(grown), grown.data());
  EXPECT_EQ(begin_of(std::as_const(grown)), grown.data());
  EXPECT_EQ(begin_of(std::span(grown)), grown.data());
  EXPECT_EQ(begin_of(fixed), fixed.data());
  EXPECT_EQ(begin_of(plain), plain);
  EXPECT_EQ(begin_of(convertible{fixed}), fixed.data());
  const payload none;
  EXPECT_TRUE(send_source(7, none).is_run());
  EXPECT_EQ(send_source(7, none).length(), 0U);
}

TEST(Payload, CountsWhatGoesWithTheTableOfParts) {
  const std::vector<std::byte> bytes = pattern(10);
  const std::array<std::span<const std::byte>, 2> runs{bytes, bytes};
  const payload gathered(runs);
  EXPECT_EQ(send_source(7, gathered).length(), 20U);
  const payload parts = payload::parts(runs);
  EXPECT_EQ(send_source(7, parts).length(), 44U);
  const payload no_parts = payload::parts({});
  EXPECT_EQ(send_source(7, no_parts).length(), 8U);
  buffer filled(100);
  filled.resize(7);
  const payload taken(std::move(filled));
  EXPECT_EQ(send_source(7, taken).length(), 7U);
  EXPECT_EQ(send_source(7, taken).owned(), &filled);
}

TEST(MessageId, IsATagOrAHandlersNumberWithAHeader) {
  const payload none;
  const send_source tagged(7, none);
  EXPECT_EQ(tagged.kind(), message_kind::tagged);
  EXPECT_EQ(tagged.tag(), 7U);
  EXPECT_TRUE(tagged.header().empty());
  const std::vector<std::byte> header = pattern(5);
  const send_source active(active_message{8, header}, none);
  EXPECT_EQ(active.kind(), message_kind::active);
  EXPECT_EQ(active.tag(), 8U);
  EXPECT_EQ(active.header().data(), header.data());
}

/// Calls `use` with each form of `bytes`, and with the bytes that arrive of it.
template <class Use>
void in_each_form(const std::vector<std::byte>& bytes, const Use& use) {
  const std::span<const std::byte> all(bytes);
  const std::array<std::span<const std::byte>, 3> runs{all.first(1), {}, all.subspan(1)};
  std::vector<std::byte> with_table;
  detail::encode_parts_table(runs, with_table);
  with_table.insert(with_table.end(), bytes.begin(), bytes.end());
  use("one run", bytes, bytes);
  use("several", runs, bytes);
  use("parts", payload::parts(runs), with_table);
  buffer filled(bytes.size());
  std::copy(bytes.begin(), bytes.end(), filled.data());
  use("a buffer", std::move(filled), bytes);
  EXPECT_FALSE(filled) << "it was sent";
  use("no bytes", {}, std::vector<std::byte>());
}

enum class send_call { blocking, started, posted };

void send_by(send_call call, endpoint& over, const message_destination& to, const payload& what) {
  if (call == send_call::blocking) return over.send(to, what, {.until = send_until::matched});
  if (call == send_call::posted) return over.post_send(to, what, 1);
  over.start_send(to, what).wait();
}

void arrives_in_each_form(send_call call, std::size_t size, bool is_active) {
  simulated_messages both;
  const std::vector<std::byte> header = pattern(4, 9);
  const message_destination to =
      is_active ? message_destination(active_message{7, header}) : message_destination(7);
  buffer made;
  request receive;
  bool is_started = false;
  both.receiver().on_message(7, [&](message came) {
    EXPECT_TRUE(std::ranges::equal(came.header(), header));
    receive = came.start_receive({made, most});
    is_started = true;
  });
  in_each_form(pattern(size), [&](const char* form, const payload& what,
                                  const std::vector<std::byte>& arrives) {
    SCOPED_TRACE(form);
    is_started = !is_active;
    if (!is_active) receive = both.receiver().start_receive(7, {made, most});
    send_by(call, both.sender, to, what);
    ASSERT_TRUE(both.network().run_until([&] { return is_started && receive.done(); }));
    EXPECT_FALSE(receive.error());
    EXPECT_TRUE(std::ranges::equal(made.bytes(), arrives));
    both.settle();  // what was posted lets go of the bytes
  });
}

TEST(Payload, ArrivesInEachFormByEachCall) {
  for (const send_call call : {send_call::blocking, send_call::started, send_call::posted}) {
    for (const std::size_t size : {10U, 300'000U}) {
      for (const bool is_active : {false, true}) {
        SCOPED_TRACE(std::to_string(size) + (is_active ? " to a handler" : " with a tag"));
        arrives_in_each_form(call, size, is_active);
      }
    }
  }
}

TEST(Payload, PartsReachAHandlerAsParts) {
  for (const std::size_t size : {3U, 300'000U}) {
    simulated_messages both;
    const std::vector<std::byte> first = pattern(2, 1);
    const std::vector<std::byte> last = pattern(size, 2);
    const std::array<std::span<const std::byte>, 3> parts{first, {}, last};
    message_parts received;
    request receive;
    both.receiver().on_message(7, [&](message came) {
      receive = came.start_receive({received, most});
    });
    both.sender.send(active_message{7}, payload::parts(parts), {.until = send_until::matched});
    ASSERT_TRUE(both.network().run_until([&] { return receive.done() && received.size() == 3; }));
    EXPECT_FALSE(receive.error());
    EXPECT_TRUE(std::ranges::equal(received[0], first));
    EXPECT_TRUE(received[1].empty());
    EXPECT_TRUE(std::ranges::equal(received[2], last));
  }
}

TEST(Payload, BufferIsKeptWhereASendDoesNotStart) {
  simulated_pair_options options;
  options.owner_worker.message_window = 16U << 10U;
  simulated_messages both(options);
  buffer kept(1000);
  std::error_code ec;
  both.sender.send(active_message{1, pattern(5000)}, std::move(kept), {}, ec);
  EXPECT_EQ(ec, errc::header_too_long);
  EXPECT_TRUE(kept);
  const std::vector<std::byte> bytes = pattern(1000);
  ec.clear();
  for (int sent = 0; sent < 100 && !ec; ++sent) {
    both.sender.send(1, bytes, {.backpressure = backpressure::fail}, ec);
  }
  EXPECT_EQ(ec, errc::would_block);
  both.sender.send(1, std::move(kept), {.backpressure = backpressure::fail}, ec);
  EXPECT_EQ(ec, errc::would_block);
  EXPECT_TRUE(kept);
  both.sender.send(1, buffer(), {}, ec);
  EXPECT_EQ(ec, errc::empty_buffer);
  both.sender.close(close_mode::abort);
  both.sender.send(1, std::move(kept), {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_TRUE(kept);
}

TEST(ByteStream, RefusesBuffersAndPartsAndGoesOn) {
  simulated_messages both;
  endpoint back = both.back();
  const std::vector<std::byte> bytes = pattern(10);
  const std::array<std::span<const std::byte>, 2> runs{std::span(bytes).first(4),
                                                       std::span(bytes).subspan(4)};
  buffer kept(10);
  std::error_code ec;
  both.sender.stream_send(std::move(kept), {}, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  EXPECT_TRUE(kept);
  const request parts = both.sender.start_stream_send(payload::parts(runs));
  EXPECT_EQ(parts.error(), errc::invalid_argument);
  EXPECT_NE(parts.description().find("byte stream"), std::string::npos) << parts.description();
  both.sender.stream_send(runs);
  std::vector<std::byte> into(bytes.size());
  EXPECT_EQ(back.stream_receive(into, stream_amount::all), bytes.size());
  EXPECT_EQ(into, bytes);
}

}  // namespace
}  // namespace ucx::test
