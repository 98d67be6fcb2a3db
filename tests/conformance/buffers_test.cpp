// Buffers and errors, by the rows F1 to F12 of docs/explanation/comparisons.md.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "ucx/buffer.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

TEST(ConformanceF, F1_OwnsAdoptsAndHandsOver) {
  buffer heap(100);
  fill_pattern(heap.bytes());
  const std::span<std::byte> released = heap.release();
  EXPECT_FALSE(heap);
  EXPECT_TRUE(holds_pattern(released));
  int freed = 0;
  {
    const buffer adopted(released, [&](std::span<std::byte> bytes) {
      ++freed;
      delete[] bytes.data();
    });
    EXPECT_TRUE(holds_pattern(adopted.bytes()));
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);
  buffer_pool pool({.size = 10, .count = 1});
  buffer pooled = pool.take();
  std::error_code ec;
  EXPECT_TRUE(pooled.release(ec).empty());
  EXPECT_EQ(ec, errc::pooled_buffer);
  EXPECT_TRUE(pool.owns(pooled));
}

// What only a value's type can say, and says when the program is compiled.
static_assert(!std::is_copy_constructible_v<buffer> && !std::is_copy_assignable_v<buffer>);
static_assert(std::is_nothrow_move_constructible_v<buffer>);
template <class Memory>
concept sendable = requires(endpoint peer, Memory memory) {
  peer.start_send(1, memory);
};
template <class Memory>
concept receivable = requires(endpoint peer, Memory memory) {
  peer.start_receive(1, memory);
};
static_assert(sendable<std::span<std::byte>> && sendable<std::span<const std::byte>>);
static_assert(receivable<std::span<std::byte>>);
static_assert(!receivable<std::span<const std::byte>>, "read-only memory receives nothing");
static_assert(!sendable<std::span<const int>>, "bytes are asked for: std::as_bytes");
static_assert(
    std::is_same_v<decltype(std::declval<const buffer&>().bytes()), std::span<const std::byte>>);

TEST(ConformanceF, F2_AreOfAnyMemoryResource) {
  std::array<std::byte, 1000> memory = {};
  std::pmr::monotonic_buffer_resource all(memory.data(), memory.size(),
                                          std::pmr::null_memory_resource());
  {
    buffer first(all, 600);
    EXPECT_EQ(first.size(), 600U);
    EXPECT_GE(first.data(), memory.data());
    EXPECT_LE(first.data() + first.capacity(), memory.data() + memory.size());
    EXPECT_THROW(buffer(all, 600), std::bad_alloc);
    first.resize(10);
  }  // all 600 are given back
  buffer second(all, 100);
  const std::span<std::byte> released = second.release();
  EXPECT_EQ(released.size(), 100U);
  EXPECT_FALSE(second);
  all.deallocate(released.data(), released.size());  // whose it is now
}

TEST(ConformanceF, F4_SizesAreBytesAndChecked) {
  buffer made(8);
  std::error_code ec;
  made.resize(9, ec);
  EXPECT_EQ(ec, errc::buffer_too_small);
  EXPECT_EQ(made.size(), 8U);
  made.resize(3, ec);
  EXPECT_FALSE(ec);
  EXPECT_EQ(made.bytes().size(), 3U);
  EXPECT_EQ(made.capacity(), 8U);
}

TEST(ConformanceF, F6_PatternsTellEveryOtherByte) {
  buffer made(1000);
  ucx::fill_pattern(made.bytes(), 3);
  EXPECT_EQ(ucx::find_pattern_mismatch(made.bytes(), 3), std::nullopt);
  EXPECT_NE(ucx::find_pattern_mismatch(made.bytes(), 4), std::nullopt) << "of another content";
  for (std::size_t i = 0; i < made.size(); i += 111) {
    made.bytes()[i] ^= std::byte{1};
    EXPECT_EQ(ucx::find_pattern_mismatch(made.bytes(), 3), i);
    made.bytes()[i] ^= std::byte{1};
  }
}

TEST(ConformanceF, F11_EachErrorHasItsOwnWords) {
  std::set<std::string> texts;
  const int last = static_cast<int>(errc::checksum_mismatch);
  for (int value = 1; value <= last; ++value) {
    texts.insert(make_error_code(static_cast<errc>(value)).message());
  }
  EXPECT_EQ(texts.size(), static_cast<std::size_t>(last));
  EXPECT_EQ(texts.count(""), 0U);
}

// Each call once with an error code; those that start something have it in their request.
template <class Endpoint>
concept says_errors = requires(Endpoint peer, worker own, message held, buffer memory,
                               buffer_pool pool, std::span<std::byte> into, std::error_code ec,
                               std::span<const std::span<const std::byte>> parts) {
  peer.send(1, into, {}, ec);
  peer.send(1, payload::parts(parts), {}, ec);
  peer.post_send(1, into, 7, {}, ec);
  peer.post_send(1, parts, 7, {}, ec);
  peer.post_send(1, std::move(memory), 7, {}, ec);
  peer.post_send(1, payload::parts(parts), 7, {}, ec);
  peer.send(active_message{1, into}, into, {}, ec);
  peer.post_send(active_message{1, into}, into, 7, {}, ec);
  peer.post_send(active_message{1, into}, parts, 7, {}, ec);
  peer.stream_send(into, {}, ec);
  peer.stream_receive(into, stream_amount::some, {}, ec);
  peer.receive(1, into, {}, ec);
  own.receive(1, into, {}, ec);
  own.on_message(1, move_only_handler<message>(), ec);
  held.receive(into, {}, ec);
  memory.resize(1, ec);
  memory.release(ec);
  pool.take({}, ec);
  pool.take(1, ec);
};
static_assert(says_errors<endpoint>);

TEST(ConformanceF, F12_NothingThrowsWhereACodeIsAskedFor) {
  std::error_code ec;
  const buffer_pool none({.size = 0, .count = 1}, ec);
  EXPECT_EQ(ec, errc::bad_pool);
  buffer_pool pool({.size = 1, .count = 1}, ec);
  EXPECT_FALSE(ec);
  const buffer first = pool.take({}, ec);
  EXPECT_FALSE(ec);
  const buffer second = pool.take({}, ec);
  EXPECT_EQ(ec, errc::would_block);
  EXPECT_EQ(ec, std::errc::operation_would_block);
  EXPECT_THROW(pool.take(), error);
  EXPECT_FALSE(second);
}

}  // namespace
}  // namespace ucx::test
