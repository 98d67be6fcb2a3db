// What becomes of messages when their connection or their worker ends: the rows B24 and E22 of
// docs/explanation/comparisons.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "conformance/message_fixture.hpp"
#include "support/bytes/pattern.hpp"
#include "support/process/process_memory.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// The keys that came back, and how.
class returned_keys {
 public:
  void add(std::uint64_t key, std::error_code how) {
    const std::lock_guard guard(mutex_);
    EXPECT_TRUE(ended_.emplace(key, how).second) << "a second time: " << key;
  }
  std::size_t count() const {
    const std::lock_guard guard(mutex_);
    return ended_.size();
  }
  std::error_code of(std::uint64_t key) const {
    const std::lock_guard guard(mutex_);
    return ended_.at(key);
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::error_code> ended_;
};

constexpr std::uint64_t short_ones = 200;
constexpr std::uint64_t long_ones = 3;
constexpr std::uint64_t all_of_them = short_ones + long_ones;

/// With room for about fifty short messages, and a peer whose silence is noticed soon.
class ConformanceCEnds : public ConformanceC {
 protected:
  ConformanceCEnds() : ConformanceC(impatient()) {
    message_handlers handlers;
    handlers.on_sent = [keys = keys_](std::uint64_t key, std::error_code how) {
      keys->add(key, how);
    };
    sender().set_message_handlers(std::move(handlers));
  }

  static worker_options impatient() {
    worker_options options;
    options.heartbeat_interval = 200ms;
    options.heartbeat_timeout = 5s;
    options.message_window = 64U << 10U;
    return options;
  }
  /// More than the peer has room for; the keys are 0, 1, 2, ...
  void post_all() {
    std::error_code ec;
    for (std::uint64_t key = 0; key < all_of_them; ++key) {
      sender().post_send(1, key < short_ones ? short_ : long_, key, {}, ec);
      ASSERT_FALSE(ec) << ec.message();
    }
  }

  const std::vector<std::byte> short_ = pattern(1000, 1);
  const std::vector<std::byte> long_ = pattern(std::size_t{1} << 20U, 2);
  const std::shared_ptr<returned_keys> keys_ = std::make_shared<returned_keys>();
};

TEST_P(ConformanceCEnds, B24_AbortHandsOutTheKeysOfWhatWasNotSent) {
  post_all();
  EXPECT_LT(keys_->count(), short_ones);
  std::error_code ec;
  sender().close(close_mode::abort, ec);
  ASSERT_TRUE(pair_.until([&] { return keys_->count() == all_of_them; }));
  for (std::uint64_t key = 0; key < all_of_them; ++key) {
    const std::error_code how = keys_->of(key);
    // The first ones had room, and went at once.
    EXPECT_TRUE(how == errc::canceled || (!how && key < 66)) << key << ": " << how.message();
  }
  sender().post_send(1, short_, all_of_them, {}, ec);
  EXPECT_EQ(ec, errc::closed);
  EXPECT_EQ(keys_->count(), all_of_them) << "one that was not started has no key to return";
}

TEST_P(ConformanceCEnds, B24_FlushHandsOutTheKeysOfWhatItWaitedFor) {
  std::vector<std::vector<std::byte>> into;
  std::vector<request> receives;
  for (std::uint64_t i = 0; i < all_of_them; ++i) {
    into.emplace_back(i < short_ones ? short_.size() : long_.size());
    receives.push_back(receiver().start_receive(1, into.back()));
  }
  post_all();
  request closing = sender().start_close(close_mode::flush);
  EXPECT_FALSE(outcome(closing));
  ASSERT_TRUE(pair_.until([&] { return keys_->count() == all_of_them; }));
  for (std::uint64_t key = 0; key < all_of_them; ++key) EXPECT_FALSE(keys_->of(key)) << key;
  for (std::uint64_t i = 0; i < all_of_them; ++i) {
    ASSERT_FALSE(outcome(receives[i])) << i;
    EXPECT_TRUE(holds_pattern(into[i], i < short_ones ? 1 : 2)) << i;
  }
}

TEST_P(ConformanceCEnds, B24_APeerThatLeavesReturnsTheKeys) {
  if (pair_.to_itself()) GTEST_SKIP() << "there is no other side that could leave";
  endpoint back = pair_.back();
  post_all();
  request closing = back.start_close(close_mode::flush);
  ASSERT_TRUE(pair_.until([&] { return keys_->count() == all_of_them; }));
  for (std::uint64_t key = 0; key < all_of_them; ++key) {
    const std::error_code how = keys_->of(key);
    EXPECT_TRUE(how == errc::closed_by_peer || (!how && key < 66)) << key << ": " << how.message();
  }
  outcome(closing);
}

TEST_P(ConformanceCEnds, B24_TheEndNamesTheKeysOfWhatWasNotSent) {
  if (pair_.to_itself()) GTEST_SKIP() << "there is no other side that could leave";
  std::mutex mutex;
  std::optional<connection_end> end;
  endpoint_options options;
  options.wait = connect_wait::none;
  options.events.on_closed = [&](const connection_end& told) {
    const std::lock_guard guard(mutex);
    end = told;
  };
  worker& side = pair_.sender_side();
  endpoint told = pair_.door ? endpoint(side, pair_.door->address(), std::move(options))
                             : endpoint(side, receiver().address(), std::move(options));
  ASSERT_TRUE(pair_.until([&] { return told.state() == connection_state::active; }));
  told.send(0xbac, {});
  endpoint back = pair_.take(0xbac).peer();
  std::error_code ec;
  for (std::uint64_t key = 10; key < 13; ++key) told.post_send(1, long_, key, {}, ec);
  EXPECT_FALSE(ec);
  request closing = back.start_close(close_mode::flush);
  ASSERT_TRUE(pair_.until([&] {
    const std::lock_guard guard(mutex);
    return end.has_value();
  }));
  EXPECT_EQ(end->reason, errc::closed_by_peer);
  EXPECT_EQ(end->unsent, (std::vector<std::uint64_t>{10, 11, 12}));
  outcome(closing);
}

TEST_P(ConformanceCEnds, E22_UnmatchedMessagesGoWithTheWorker) {
  if (pair_.to_itself()) GTEST_SKIP() << "this worker sends, too: it can not end alone";
  // Of every kind: here, held by the program, announced, for a handler, and of the stream.
  receiver().on_message(5, [](message) {});
  endpoint& peer = sender();
  peer.send(1, short_);
  peer.send(2, short_);
  peer.stream_send(short_);
  peer.send(active_message{5, pattern(100)}, short_);
  request announced = peer.start_send(3, long_);
  request asked = peer.start_send(4, short_, {.until = send_until::matched});
  ASSERT_TRUE(pair_.until([&] { return receiver().probe(4).has_value(); }));
  message held = pair_.take(2);
  EXPECT_FALSE(announced.done());
  EXPECT_FALSE(asked.done());

  pair_.loop.reset();
  pair_.door.reset();
  pair_.receiver_.reset();
  EXPECT_TRUE(holds_pattern(held.data(), 1)) << "what the program holds keeps its worker";
  EXPECT_FALSE(announced.done());
  held = message();
  for (request* each : {&announced, &asked}) {
    const std::error_code how = outcome(*each);
    EXPECT_TRUE(how == errc::connection_reset || how == errc::closed_by_peer) << how.message();
  }
  std::error_code ec;
  peer.send(1, short_, {}, ec);
  EXPECT_TRUE(ec);
  pair_.receiver_context.reset();
}

INSTANTIATE_TEST_SUITE_P(Messages, ConformanceCEnds, testing::ValuesIn(every_message_pair()),
                         name_of_messages);
INSTANTIATE_TEST_SUITE_P(Adopted, ConformanceCEnds, testing::ValuesIn(adopted_message_pairs()),
                         name_of_messages);

class ConformanceCWorkers : public testing::TestWithParam<route> {};

TEST_P(ConformanceCWorkers, E22_LeaveNothingOfUnmatchedMessages) {
  constexpr int workers = 12;
  const std::vector<std::byte> bytes = pattern(60000);
  const auto fill_one = [&] {
    message_pair_options options;
    options.over = GetParam();
    message_pair pair(options);
    for (int i = 0; i < 60; ++i) pair.sender->send(1, bytes);
    pair.sender->send(2, {});
    EXPECT_TRUE(pair.until([&] { return pair.receiver().probe(2).has_value(); }));
  };
  for (int i = 0; i < 3; ++i) fill_one();  // what the process keeps for good
  const std::size_t before = resident_memory();
  for (int i = 0; i < workers; ++i) fill_one();
  if (memory_is_measurable) {
    EXPECT_LT(resident_memory(), before + workers * 60 * bytes.size() / 2);
  }
}

INSTANTIATE_TEST_SUITE_P(Routes, ConformanceCWorkers,
                         testing::Values(route::tcp_by_listener, route::shared_memory),
                         [](const auto& chosen) { return to_string(chosen.param); });

}  // namespace
}  // namespace ucx::test
