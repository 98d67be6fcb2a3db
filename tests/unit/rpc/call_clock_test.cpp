// Calls between two simulated processes that have clocks: what is later than what.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "call/call_message.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/rpc.hpp"

namespace ucx::calls {
namespace {

/// A clock of one process, whose wall clock stands until the test turns it.
struct turned_clock {
  explicit turned_clock(std::int64_t at) : wall(at) {}
  std::int64_t wall;  // in milliseconds
  std::shared_ptr<hybrid_clock> clock = std::make_shared<hybrid_clock>(
      [this] { return std::chrono::system_clock::time_point(std::chrono::milliseconds(wall)); });
};

/// The sender calls, and its wall clock is 300 ms ahead of the receiver's.
class CallClock : public ::testing::Test {
 protected:
  CallClock() {
    calls_.add("moment", [this](call_context& call) { seen_.push_back(call.clock); });
    calls_.add("size", [this](call_context& call, const std::vector<std::byte>& value) {
      seen_.push_back(call.clock);
      return value.size();
    });
    calls_.add("later", [this](call_context& call) {
      seen_.push_back(call.clock);
      late_ = call.defer();
    });
    calls_.add("fail", [this](call_context& call) {
      seen_.push_back(call.clock);
      throw error(errc::busy, "it fails");
    });
  }

  static test::simulated_pair_options options(std::vector<std::string>& told) {
    test::simulated_pair_options made;
    made.owner_context.log = {
        .level = log_level::warning,
        .sink = [&told](log_level, std::string_view line) { told.emplace_back(line); }};
    made.reader_context.log = made.owner_context.log;
    return made;
  }
  static std::uint64_t milliseconds(clock_stamp of) { return of.bits >> 16U; }

  /// Expects that the call is later than `before`, and its end later than the call.
  void expect_order(clock_stamp before, const call_request& ended) {
    ASSERT_FALSE(seen_.empty());
    EXPECT_GT(seen_.back(), before);
    EXPECT_GT(ended.clock(), seen_.back());
    EXPECT_GT(caller_.clock->now(), ended.clock());
  }

  turned_clock caller_{10'300};
  turned_clock callee_{10'000};
  std::vector<std::string> told_;
  test::simulated_messages both_{options(told_)};
  std::vector<message> kept_;
  std::vector<clock_stamp> seen_;
  late_answer late_;
  call_table calls_;
  call_server serves_{both_.receiver(), calls_, {.clock = callee_.clock}};
  call_channel peer_{both_.sender, {.clock = caller_.clock}};
};

TEST_F(CallClock, PutsTheFunctionBetweenTheCallAndItsAnswer) {
  for (int round = 0; round < 3; ++round) {
    const clock_stamp before = caller_.clock->now();
    auto call = peer_.start_call<void>("moment");
    EXPECT_FALSE(call.clock()) << "there is no answer yet";
    call.result();
    expect_order(before, call);
    EXPECT_EQ(milliseconds(seen_.back()), 10'300U) << "the callee follows the one that is ahead";
  }
  EXPECT_TRUE(told_.empty());
}

TEST_F(CallClock, OrdersCallsOfEachForm) {
  clock_stamp before = caller_.clock->now();
  const call_stub<void()> moment(peer_, "moment");
  auto bound = moment.start();
  bound.result();
  expect_order(before, bound);

  before = caller_.clock->now();
  auto large = peer_.start_call<std::size_t>("size", std::vector<std::byte>(300'000));
  EXPECT_EQ(large.result(), 300'000U);
  expect_order(before, large);

  before = caller_.clock->now();
  peer_.post_call("moment");
  ASSERT_TRUE(both_.network().run_until([&] { return seen_.size() == 3; }));
  EXPECT_GT(seen_.back(), before);
}

TEST_F(CallClock, OrdersFailuresAndLaterAnswers) {
  clock_stamp before = caller_.clock->now();
  auto failed = peer_.start_call<void>("fail");
  std::error_code ec;
  failed.result(ec);
  EXPECT_EQ(ec, errc::call_failed);
  expect_order(before, failed);

  before = caller_.clock->now();
  auto deferred = peer_.start_call<void>("later");
  ASSERT_TRUE(both_.network().run_until([&] { return seen_.size() == 2; }));
  EXPECT_EQ(late_.context().clock, seen_.back());
  callee_.wall = 10'400;
  late_.send(call_writer().nil());
  deferred.result();
  expect_order(before, deferred);
  EXPECT_EQ(milliseconds(deferred.clock()), 10'400U) << "when it was answered";
}

TEST_F(CallClock, NeedsNoClockAtTheOtherSide) {
  const call_channel plain(both_.sender);
  auto call = plain.start_call<void>("moment");
  call.result();
  EXPECT_FALSE(call.clock());
  EXPECT_EQ(milliseconds(seen_.back()), 10'000U) << "the callee's own";
  serves_ = call_server();
  serves_ = call_server(both_.receiver(), calls_);
  const clock_stamp before = caller_.clock->now();
  auto unstamped = peer_.start_call<void>("moment");
  unstamped.result();
  EXPECT_FALSE(seen_.back());
  EXPECT_GT(unstamped.clock(), before) << "the caller's own";
}

TEST_F(CallClock, TakesNoClockFromTheFuture) {
  caller_.wall = 10'501;
  for (int i = 0; i < 3; ++i) {
    auto call = peer_.start_call<void>("moment");
    call.result();
    EXPECT_EQ(milliseconds(seen_.back()), 10'000U);
    EXPECT_EQ(milliseconds(call.clock()), 10'501U);
  }
  EXPECT_EQ(callee_.clock->ahead(), 3U);
  ASSERT_EQ(told_.size(), 1U) << "one line for a connection";
  EXPECT_NE(told_.front().find("500 ms ahead"), std::string::npos) << told_.front();
  EXPECT_EQ(caller_.clock->ahead(), 0U);
}

TEST_F(CallClock, TakesNoAnswerFromTheFuture) {
  caller_.wall = 9'000;
  for (int i = 0; i < 2; ++i) {
    auto call = peer_.start_call<void>("moment");
    call.result();
    EXPECT_EQ(milliseconds(call.clock()), 9'000U);
  }
  EXPECT_EQ(caller_.clock->ahead(), 2U);
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(CallClock, OrdersRefusalsAndTheEndOfTheServer) {
  callee_.wall = 10'600;
  const auto expect_end = [](call_request&& call, errc why) {
    std::error_code ec;
    call.wait(ec);
    EXPECT_EQ(ec, why);
    EXPECT_EQ(milliseconds(call.clock()), 10'600U) << "by the callee's stamp";
  };
  expect_end(peer_.start_call<void>("absent"), errc::no_such_name);
  expect_end(peer_.start_call<int>("moment"), errc::signature_differs);
  calls_.refuse([](const call_context&, std::string_view) { return true; });
  expect_end(peer_.start_call<void>("moment"), errc::permission_denied);
  calls_.refuse(nullptr);
  auto deferred = peer_.start_call<void>("later");
  ASSERT_TRUE(both_.network().run_until([&] { return seen_.size() == 1; }));
  serves_ = call_server();
  expect_end(std::move(deferred), errc::call_failed);
}

TEST_F(CallClock, HasTheMomentOfALongCallWhenAllOfItIsHere) {
  auto large = peer_.start_call<std::size_t>("size", std::vector<std::byte>(300'000));
  auto small = peer_.start_call<void>("moment");
  small.result();
  ASSERT_EQ(seen_.size(), 1U) << "the short call overtakes";
  large.result();
  ASSERT_EQ(seen_.size(), 2U);
  EXPECT_GT(seen_[1], seen_[0]) << "the functions ran in this order";
}

TEST_F(CallClock, FollowsNoMessageThatIsNoCall) {
  detail::call_message sent = detail::encode_result(1, {});
  detail::add_clock(sent, {std::uint64_t{10'400} << 16U});
  const auto send = [this](const detail::call_message& what) {
    both_.sender.send(active_message{message_name("ucxio calls", 1), what.head()}, what.body);
  };
  send(sent);
  sent = detail::encode_request({.number = 1, .name = "moment"});
  detail::add_clock(sent, {std::uint64_t{10'400} << 16U});
  sent.head_room[7] = std::byte{0x80};  // a flag of a later version
  send(sent);
  caller_.wall = 10'000;
  peer_.call<void>("moment");
  EXPECT_EQ(milliseconds(seen_.back()), 10'000U);
  EXPECT_EQ(callee_.clock->ahead(), 0U);
}

TEST_F(CallClock, HasTheStampOfTheCallAndNoMore) {
  serves_ = call_server();
  both_.receiver().on_message(message_name("ucxio calls", 1),
                              [this](message came) { kept_.push_back(std::move(came)); });
  const clock_stamp before = caller_.clock->now();
  auto stamped = peer_.start_call<void>("moment");
  auto plain = call_channel(both_.sender).start_call<void>("moment");
  ASSERT_TRUE(both_.network().run_until([&] { return kept_.size() == 2; }));
  EXPECT_EQ(detail::clock_of(kept_[0].header()), clock_stamp{before.bits + 1});
  EXPECT_EQ(kept_[1].header().size(), 48U) << "a call without a clock is no longer than it was";
  both_.receiver().on_message(message_name("ucxio calls", 1), {});  // cancellations come still
}

}  // namespace
}  // namespace ucx::calls
