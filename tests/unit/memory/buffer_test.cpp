// Buffers and pools of them: who owns the memory of a send, and when it comes back.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "memory/buffer_home.hpp"
#include "support/handlers/lock_probe.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(Buffer, OwnsMemoryOfTheHeap) {
  buffer made(100);
  ASSERT_TRUE(made);
  EXPECT_EQ(made.size(), 100U);
  EXPECT_EQ(made.capacity(), 100U);
  made.resize(10);
  EXPECT_EQ(made.bytes().size(), 10U);
  made.resize(100);
  EXPECT_THROW(made.resize(101), error);
  buffer moved(std::move(made));
  EXPECT_FALSE(made);
  EXPECT_EQ(made.size(), 0U);
  const std::span<std::byte> released = moved.release();
  EXPECT_EQ(released.size(), 100U);
  EXPECT_FALSE(moved);
  delete[] released.data();
}

TEST(Buffer, OfMoreThanThereIsIsEmpty) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  std::error_code ec;
  const buffer none(most, ec);
  EXPECT_EQ(ec, errc::no_memory);
  EXPECT_FALSE(none);
  EXPECT_THROW(const buffer thrown(most), std::bad_alloc);
  const buffer some(100, ec);
  EXPECT_FALSE(ec);
  EXPECT_EQ(some.size(), 100U);
}

TEST(Buffer, GivesAdoptedMemoryToItsFunctionOnce) {
  std::vector<std::byte> memory(10);
  int freed = 0;
  const auto free = [&](std::span<std::byte> bytes) {
    ++freed;
    EXPECT_EQ(bytes.data(), memory.data());
    EXPECT_EQ(bytes.size(), 10U);
  };
  {
    buffer adopted(memory, free);
    adopted.resize(3);
    buffer other;
    other = std::move(adopted);
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);
  {
    buffer adopted(memory, free);
    EXPECT_EQ(adopted.release().data(), memory.data());
  }
  EXPECT_EQ(freed, 1);
}

TEST(BufferPool, HandsOutSoManyAndNoMore) {
  buffer_pool pool({.size = 64, .count = 3});
  std::vector<buffer> taken;
  for (int i = 0; i < 3; ++i) {
    taken.push_back(pool.take());
    EXPECT_EQ(taken.back().size(), 64U);
    EXPECT_TRUE(pool.owns(taken.back()));
  }
  std::error_code ec;
  EXPECT_FALSE(pool.take({}, ec));
  EXPECT_EQ(ec, errc::would_block);
  EXPECT_THROW(pool.take(), error);
  EXPECT_THROW(taken.front().release(), error);
  EXPECT_THROW(taken.front().resize(65), error);
  int told = 0;
  pool.when_available([&] { ++told; });
  EXPECT_EQ(told, 0);
  taken.pop_back();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(pool.available(), 1U);
  pool.when_available([&] { ++told; });
  EXPECT_EQ(told, 2);
  EXPECT_FALSE(pool.owns(buffer(10)));
}

TEST(BufferPool, TakesForSoManyBytes) {
  buffer_pool pool({.size = 64, .count = 1});
  std::error_code ec;
  EXPECT_FALSE(pool.take(65, ec));
  EXPECT_EQ(ec, errc::buffer_too_small);
  EXPECT_THROW(pool.take(65), error);
  EXPECT_EQ(pool.available(), 1U);
  EXPECT_EQ(pool.take().size(), 64U);
  EXPECT_EQ(pool.take(0).size(), 0U) << "no bytes are wanted, not all";
  buffer taken = pool.take(10, ec);
  EXPECT_FALSE(ec);
  EXPECT_EQ(taken.size(), 10U);
  EXPECT_EQ(taken.capacity(), 64U);
  EXPECT_FALSE(pool.take(10, ec));
  EXPECT_EQ(ec, errc::would_block);
  taken.resize(65, ec);
  EXPECT_EQ(ec, errc::buffer_too_small);
  taken.release(ec);
  EXPECT_EQ(ec, errc::pooled_buffer);
}

TEST(BufferPool, HandlerThatIsReplacedIsNotCalled) {
  buffer_pool pool({.size = 8, .count = 1});
  std::optional<buffer> out = pool.take();
  int first = 0;
  int second = 0;
  pool.when_available([&] { ++first; });
  pool.when_available([&] { ++second; });
  out.reset();
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

TEST(BufferPool, MayGoBeforeItsBuffers) {
  std::optional<buffer> kept;
  {
    buffer_pool pool({.size = 8, .count = 2});
    kept = pool.take();
  }
  kept->bytes()[7] = std::byte{1};
  kept.reset();
}

TEST(BufferPool, OfNothingMakesNoSense) {
  std::error_code ec;
  buffer_pool none({.size = 0, .count = 1}, ec);
  EXPECT_EQ(ec, errc::bad_pool);
  EXPECT_THROW(buffer_pool({.size = 1, .count = 0}), error);
  EXPECT_THROW(buffer_pool({.size = ~std::size_t{0}, .count = 2}), error);
  none.take({}, ec);
  EXPECT_EQ(ec, errc::closed);
}

TEST(BufferPool, BuffersComeBackFromSendsByThemselves) {
  for (const std::size_t inline_limit : {std::size_t{8192}, std::size_t{0}}) {
    simulated_pair_options options;
    options.link.inline_limit = inline_limit;
    simulated_messages both(options);
    buffer_pool pool({.size = 100000, .count = 2});
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(both.network().run_until([&] { return pool.available() > 0; }));
      buffer next = pool.take();
      next.resize(i % 2 == 0 ? 100 : 100000);
      fill_pattern(next.bytes());
      std::vector<std::byte> into(next.size());
      request receive = both.receiver().start_receive(1, into);
      request send = both.sender.start_send(1, std::move(next));
      EXPECT_FALSE(next);
      EXPECT_FALSE(both.outcome(receive));
      EXPECT_FALSE(both.outcome(send));
      EXPECT_TRUE(holds_pattern(into));
    }
    EXPECT_TRUE(both.network().run_until([&] { return pool.available() == 2; }));
  }
}

TEST(Buffer, SentTwiceIsAnError) {
  simulated_messages both;
  buffer once(10);
  both.sender.start_send(1, std::move(once)).wait();
  request again = both.sender.start_send(1, std::move(once));
  EXPECT_EQ(again.error(), errc::empty_buffer);
  again = both.sender.start_send(active_message{1}, std::move(once));
  EXPECT_EQ(again.error(), errc::empty_buffer);
  std::error_code ec;
  both.sender.post_send(1, std::move(once), 5, {}, ec);
  EXPECT_EQ(ec, errc::empty_buffer);
}

TEST(Buffer, IsFreedWhenItsSendEnds) {
  simulated_messages both;
  std::vector<std::byte> memory = pattern(300000);
  int freed = 0;
  buffer adopted(memory, [&](std::span<std::byte>) { ++freed; });
  request send = both.sender.start_send(1, std::move(adopted));
  both.settle();
  EXPECT_EQ(freed, 0);
  std::vector<std::byte> into(memory.size());
  request receive = both.receiver().start_receive(1, into);
  EXPECT_FALSE(both.outcome(receive));
  EXPECT_FALSE(both.outcome(send));
  both.settle();
  EXPECT_EQ(freed, 1);
  EXPECT_TRUE(holds_pattern(into));
  // Also of one that is given up.
  buffer unwanted(memory, [&](std::span<std::byte>) { ++freed; });
  request given_up = both.sender.start_send(1, std::move(unwanted));
  given_up.cancel();
  both.settle();
  EXPECT_EQ(freed, 2);
}

TEST(Buffer, IsFreedOnceThoughNobodyRunsWhatIsQueued) {
  std::vector<std::byte> memory(10);
  for (const std::size_t length : {memory.size(), std::size_t{0}}) {
    int freed = 0;
    buffer adopted(std::span<std::byte>(memory).first(length), [&](std::span<std::byte> bytes) {
      ++freed;
      EXPECT_EQ(bytes.size(), length);
    });
    move_only_handler<> due = detail::buffer_home::give_back(std::move(adopted));
    EXPECT_EQ(freed, 0);
    due.reset();
    EXPECT_EQ(freed, 1);
  }
}

TEST(Buffer, IsFreedThoughItsWorkerGoesInMidSend) {
  std::vector<std::byte> memory = pattern(300000);
  int freed = 0;
  {
    simulated_messages both;
    buffer adopted(memory, [&](std::span<std::byte>) { ++freed; });
    const request send = both.sender.start_send(1, std::move(adopted));
    EXPECT_EQ(freed, 0);
  }
  EXPECT_EQ(freed, 1);
}

TEST(PostedSend, KeysComeBackOnceEach) {
  simulated_messages both;
  std::map<std::uint64_t, std::error_code> ended;
  message_handlers handlers;
  handlers.on_sent = [&](std::uint64_t key, std::error_code how) {
    EXPECT_TRUE(ended.emplace(key, how).second) << key;
  };
  both.sender.set_message_handlers(std::move(handlers));
  const std::vector<std::byte> small = pattern(10);
  const std::vector<std::byte> big = pattern(300000);
  std::error_code ec;
  both.sender.post_send(1, small, 100, {}, ec);
  both.sender.post_send(1, buffer(10), 101, {}, ec);
  both.sender.post_send(2, big, 102, {}, ec);
  both.settle();
  EXPECT_FALSE(ec);
  EXPECT_EQ(ended.size(), 2U);
  both.take(2);
  both.settle();
  EXPECT_EQ(ended.at(102), errc::message_refused);
  // What is outstanding when the connection is closed comes back too.
  for (std::uint64_t key = 200; key < 210; ++key) both.sender.post_send(3, big, key, {}, ec);
  both.sender.close(close_mode::abort);
  both.settle();
  EXPECT_EQ(ended.size(), 13U);
  for (std::uint64_t key = 200; key < 210; ++key) EXPECT_EQ(ended.at(key), errc::canceled);
  // What can not be started at all is told at once, and leaves the buffer where it is.
  both.sender.post_send(3, big, 300, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  buffer kept(10);
  both.sender.post_send(active_message{3}, std::move(kept), 301, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_TRUE(kept);
  both.settle();
  EXPECT_EQ(ended.size(), 13U);
}

TEST(PostedSend, GathersAndSendsParts) {
  simulated_messages both;
  std::map<std::uint64_t, std::error_code> ended;
  message_handlers handlers;
  handlers.on_sent = [&](std::uint64_t key, std::error_code how) { ended.emplace(key, how); };
  both.sender.set_message_handlers(std::move(handlers));
  const std::vector<std::byte> first = pattern(10);
  const std::vector<std::byte> second = pattern(300'000);
  for (const bool long_too : {false, true}) {
    std::vector<std::span<const std::byte>> runs{first, {}, first};
    if (long_too) runs.emplace_back(second);
    ended.clear();
    std::error_code ec;
    std::optional<message> active;
    both.receiver().on_message(4, [&](message came) { active = std::move(came); });
    both.sender.post_send(1, runs, 100, {}, ec);
    both.sender.post_send(2, payload::parts(runs), 101, {}, ec);
    both.sender.post_send(active_message{4, first}, runs, 102, {}, ec);
    runs.assign(runs.size(), {});  // the list is the caller's again
    EXPECT_FALSE(ec);
    std::vector<std::byte> whole(20 + (long_too ? second.size() : 0));
    request receive = both.receiver().start_receive(1, whole);
    message_parts parts;
    request apart = both.receiver().start_receive(2, {parts, 1U << 20U});
    EXPECT_FALSE(both.outcome(receive));
    EXPECT_FALSE(both.outcome(apart));
    EXPECT_TRUE(holds_pattern(std::span(whole).subspan(10, 10)));
    ASSERT_EQ(parts.size(), runs.size());
    EXPECT_TRUE(parts[1].empty());
    EXPECT_TRUE(holds_pattern(parts[2]));
    if (long_too) {
      EXPECT_TRUE(holds_pattern(parts[3]));
    }
    ASSERT_TRUE(both.network().run_until([&] { return active.has_value(); }));
    request handled = active->start_receive(whole);
    EXPECT_FALSE(both.outcome(handled));
    EXPECT_TRUE(holds_pattern(std::span(whole).first(10)));
    active.reset();
    both.settle();
    EXPECT_EQ(ended.size(), 3U);
    for (const auto& [key, how] : ended) EXPECT_FALSE(how) << key;
  }
}

TEST(PostedSend, KnowsHowLongWhatItGathersIs) {
  simulated_pair_options options;
  options.owner_worker.message_window = 16U << 10U;
  simulated_messages both(options);
  const std::vector<std::byte> bytes = pattern(3000);
  const std::vector<std::span<const std::byte>> runs{bytes, bytes};
  constexpr send_options at_once{.backpressure = backpressure::fail};
  // Two of 6000 bytes fit, and a third does not; a form that counted nothing would queue it.
  int posted = 0;
  std::error_code ec;
  for (; !ec && posted < 10; ++posted) both.sender.post_send(1, runs, 7, at_once, ec);
  EXPECT_EQ(ec, errc::would_block);
  EXPECT_EQ(posted, 3);
  both.sender.post_send(1, payload::parts(runs), 7, at_once, ec);
  EXPECT_EQ(ec, errc::would_block);
  both.sender.post_send(active_message{1}, runs, 7, at_once, ec);
  EXPECT_EQ(ec, errc::would_block);
}

TEST(MessageHandlers, MayBeReplacedInsideOneOfThem) {
  simulated_messages both;
  std::vector<std::uint64_t> old_keys;
  std::vector<std::uint64_t> new_keys;
  const std::vector<std::byte> bytes = pattern(10);
  message_handlers before;
  before.on_sent = [&](std::uint64_t key, std::error_code) {
    old_keys.push_back(key);
    message_handlers after;
    after.on_sent = [&](std::uint64_t late, std::error_code) { new_keys.push_back(late); };
    both.sender.set_message_handlers(std::move(after));
  };
  both.sender.set_message_handlers(std::move(before));
  std::error_code ec;
  both.sender.post_send(1, bytes, 1, {}, ec);
  both.sender.post_send(1, bytes, 2, {}, ec);
  both.settle();
  both.sender.post_send(1, bytes, 3, {}, ec);
  both.settle();
  EXPECT_EQ(old_keys, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(new_keys, (std::vector<std::uint64_t>{3}));
}

/// Returns handlers that look, when they go, whether `lock` is free, and count that.
message_handlers watched_handlers(lock_probe& lock, int& gone) {
  const auto at_end = [&](int* held) {
    delete held;
    EXPECT_TRUE(lock.is_free());
    ++gone;
  };
  message_handlers made;
  made.on_writable = [held = std::shared_ptr<int>(new int(0), at_end)] {};
  return made;
}

TEST(MessageHandlers, OfAClosedConnectionGoUnderNoLock) {
  for (const close_mode mode : {close_mode::abort, close_mode::flush}) {
    simulated_pair_options options;
    options.reader_worker.thread_mode = thread_mode::multi;
    simulated_messages both(options);
    lock_probe lock(both.pair.reader);
    int gone = 0;
    both.sender.set_message_handlers(watched_handlers(lock, gone));
    both.settle();
    EXPECT_EQ(gone, 0);
    both.sender.close(mode);
    both.settle();
    EXPECT_EQ(gone, 1) << "though the endpoint is there";
  }
}

TEST(MessageHandlers, OfAPeerThatLeavesGoUnderNoLock) {
  simulated_pair_options options;
  options.owner_worker.thread_mode = thread_mode::multi;
  simulated_messages both(options);
  lock_probe lock(both.receiver());
  int gone = 0;
  both.back().set_message_handlers(watched_handlers(lock, gone));
  both.settle();
  EXPECT_EQ(gone, 0) << "though no handle of the connection is left here";
  both.sender.close();
  both.settle(1s);
  EXPECT_EQ(gone, 1);
}

}  // namespace
}  // namespace ucx::test
