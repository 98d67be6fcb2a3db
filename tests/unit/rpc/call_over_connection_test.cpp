// Calls between two simulated processes: what their callers get, and what runs.
#include <gtest/gtest.h>

#include <any>
#include <chrono>
#include <cstddef>
#include <functional>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/rpc.hpp"

namespace ucx::calls {
namespace {

using namespace std::chrono_literals;
using bytes = std::vector<std::byte>;

/// The sender calls what the receiver serves.
class CallOverConnection : public ::testing::Test {
 protected:
  CallOverConnection() {
    calls_.add("add", [this](int a, int b) {
      ++runs_;
      return a + b;
    });
    calls_.add("echo", [this](const bytes& value) {
      ++runs_;
      return value;
    });
    calls_.add("note", [this](int value) { noted_.push_back(value); });
    calls_.add("fail",
               [](const std::string& text) -> int { throw error(errc::no_such_name, text); });
  }

  void serve(call_server_options options = {}) {
    serves_ = call_server(both_.receiver(), calls_, std::move(options));
  }
  /// Keeps what a server would get.
  void keep_calls() {
    both_.receiver().on_message(message_name("ucxio calls", 1),
                                [this](message came) { kept_.push_back(std::move(came)); });
  }
  /// Returns the kind of what was kept.
  int kind_of(std::size_t index) const { return std::to_integer<int>(kept_[index].header()[1]); }
  bool until(const std::function<bool()>& done) { return both_.network().run_until(done); }
  template <class Result>
  std::error_code outcome(typed_call<Result>& call) {
    std::error_code ec;
    call.result(ec);
    return ec;
  }

  test::simulated_messages both_;
  int runs_ = 0;
  std::vector<int> noted_;
  std::vector<message> kept_;
  call_table calls_;
  call_server serves_;
  call_channel peer_{both_.sender};
};

TEST_F(CallOverConnection, ReturnsTheResult) {
  serve();
  EXPECT_EQ(peer_.call<int>("add", 25, 17), 42);
  calls_.add("greet", [](std::string_view name) { return "hello " + std::string(name); });
  EXPECT_EQ(peer_.call<std::string>("greet", "you"), "hello you") << "a function that came later";
  EXPECT_NO_THROW(peer_.call<void>("note", 7));
  EXPECT_EQ(noted_, std::vector<int>{7});
  EXPECT_EQ(peer_.under_way(), 0U);
}

TEST_F(CallOverConnection, CarriesArgumentsAndResultsOfEachSize) {
  serve();
  for (const std::size_t size : {0U, 1U, 900U, 1024U, 5000U, 65'536U, 300'000U, 1'048'570U}) {
    const bytes sent = test::pattern(size, 1);
    EXPECT_TRUE(peer_.call<bytes>("echo", sent) == sent) << size;
  }
  EXPECT_EQ(serves_.under_way(), 0U);
}

TEST_F(CallOverConnection, AnswersManyAtATime) {
  serve();
  std::vector<typed_call<int>> all;
  for (int i = 0; i < 200; ++i) all.push_back(peer_.start_call<int>("add", i, 1));
  EXPECT_EQ(peer_.under_way(), 200U);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(all[static_cast<std::size_t>(i)].result(), i + 1);
}

TEST_F(CallOverConnection, TellsWhatThePeerSays) {
  serve();
  auto absent = peer_.start_call<int>("absent", 1);
  EXPECT_EQ(outcome(absent), errc::no_such_name);
  EXPECT_EQ(absent.error(), errc::no_such_name);
  EXPECT_FALSE(absent.cause());
  auto other = peer_.start_call<int>("add", 1, "2");
  EXPECT_EQ(outcome(other), errc::signature_differs);
  EXPECT_NE(other.description().find("(i32,text)->i32"), std::string::npos) << other.description();
  EXPECT_NE(other.description().find("(i32,i32)->i32"), std::string::npos) << other.description();
  EXPECT_EQ(runs_, 0);
}

TEST_F(CallOverConnection, TellsWhatAFunctionThrew) {
  serve();
  auto failed = peer_.start_call<int>("fail", "some words");
  EXPECT_EQ(outcome(failed), errc::call_failed);
  EXPECT_EQ(failed.cause(), errc::no_such_name);
  try {
    peer_.call<int>("fail", "other words");
    ADD_FAILURE() << "it has thrown";
  } catch (const error& thrown) {
    EXPECT_EQ(thrown.code(), errc::call_failed);
    EXPECT_EQ(thrown.cause(), errc::no_such_name);
    EXPECT_NE(std::string(thrown.what()).find("other words"), std::string::npos) << thrown.what();
  }
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3) << "the connection lives on";
}

TEST_F(CallOverConnection, SaysThatThePeerServesNoCalls) {
  for (const std::size_t size : {10U, 2'000U, 900'000U}) {
    auto asked = peer_.start_call<bytes>("echo", test::pattern(size, 1));
    EXPECT_EQ(outcome(asked), errc::no_such_handler) << size;
  }
  serve();
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3);
  serves_ = call_server();
  auto late = peer_.start_call<int>("add", 1, 2);
  EXPECT_EQ(outcome(late), errc::no_such_handler);
}

TEST_F(CallOverConnection, IsServedOnceAtAWorker) {
  serve();
  std::error_code ec;
  const call_server second(both_.receiver(), calls_, {}, ec);
  EXPECT_EQ(ec, errc::already_exists);
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3);
}

TEST_F(CallOverConnection, FailsWithoutAChannel) {
  call_channel none;
  auto asked = none.start_call<int>("add", 1, 2);
  EXPECT_TRUE(asked.done());
  EXPECT_EQ(outcome(asked), errc::closed);
  EXPECT_THROW(none.call<int>("add", 1, 2), error);
  EXPECT_THROW(none.post_call("note", 1), error);
}

TEST_F(CallOverConnection, GivesFunctionsTheFactsOfTheCall) {
  int own = 5;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  calls_.add("facts", [&](call_context& call) {
    deadline = call.deadline;
    EXPECT_NE(call.number, 0U);
    EXPECT_EQ(call.peer->state(), connection_state::active);
    return *std::any_cast<int*>(call.program);
  });
  call_server_options options;
  options.program = &own;
  serve(std::move(options));
  const auto began = both_.network().now();
  EXPECT_EQ((peer_.start_call<int>(call_options{.timeout = 3s}, "facts").result()), 5);
  ASSERT_TRUE(deadline);
  EXPECT_GT(*deadline, began + 2s);
  EXPECT_LT(*deadline, began + 4s);
}

TEST_F(CallOverConnection, PostsCallsThatAreNotAnswered) {
  serve();
  for (int i = 0; i < 3; ++i) peer_.post_call("note", i);
  EXPECT_TRUE(until([&] { return noted_.size() == 3; }));
  EXPECT_EQ(noted_, (std::vector<int>{0, 1, 2}));
  peer_.post_call("absent", 1);
  peer_.post_call<int>("fail", "words");
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3);
  EXPECT_EQ(calls_.statistics().failed, 1U);
}

TEST_F(CallOverConnection, BindsAFunctionOnce) {
  serve();
  const call_stub<int(int, int)> add(peer_, "add");
  EXPECT_EQ(add(25, 17), 42);
  EXPECT_EQ(add.start(1, 2).result(), 3);
  EXPECT_EQ(add.untyped().called().name(), "add");
  std::error_code ec;
  const call_stub<int(int)> other(peer_, "add", {}, ec);
  EXPECT_EQ(ec, errc::signature_differs);
  // Another table has other numbers: no other function runs.
  call_table others;
  others.add("subtract", [](int a, int b) { return a - b; });
  serves_ = call_server();
  serves_ = call_server(both_.receiver(), others);
  auto late = add.start(1, 2);
  EXPECT_EQ(outcome(late), errc::no_such_name);
}

TEST_F(CallOverConnection, CallsFunctionsOfTypesKnownAtRunTime) {
  serve();
  const call_function add("add", "(i32,i32)->i32");
  call_writer arguments;
  arguments.integer(40).integer(2);
  call_request asked = peer_.start_dynamic_call(add, arguments);
  call_reader result = asked.result();
  EXPECT_EQ(result.integer(), 42);
  EXPECT_NO_THROW(result.finish());
  call_writer wrong;
  wrong.integer(1);
  EXPECT_EQ(peer_.start_dynamic_call(add, wrong).error(), std::error_code());
  call_request refused = peer_.start_dynamic_call(add, wrong);
  std::error_code ec;
  refused.result(ec);
  EXPECT_EQ(ec, errc::protocol_error);
  EXPECT_EQ(runs_, 1);
}

detail::self_owned await_sum(const call_channel& peer, int& into) {
  into = co_await peer.start_call<int>("add", 25, 17);
}

TEST_F(CallOverConnection, IsAwaited) {
  serve();
  int sum = 0;
  await_sum(peer_, sum);
  EXPECT_EQ(sum, 0);
  EXPECT_TRUE(until([&] { return sum != 0; }));
  EXPECT_EQ(sum, 42);
}

TEST_F(CallOverConnection, DoesNotRunWhereItWasNotSent) {
  serve();
  endpoint connecting = both_.pair.connect();
  const call_channel peer(connecting);
  auto asked = peer.start_call<int>("add", 1, 2);
  EXPECT_EQ(connecting.state(), connection_state::connecting);
  both_.pair.owner_process.kill();
  EXPECT_TRUE(until([&] { return asked.done(); }));
  EXPECT_TRUE(asked.error());
  EXPECT_NE(asked.error(), errc::call_outcome_unknown);
  EXPECT_EQ(runs_, 0);
}

TEST_F(CallOverConnection, HasAnUnknownOutcomeBehindALostConnection) {
  keep_calls();
  auto asked = peer_.start_call<int>("add", 1, 2);
  auto large = peer_.start_call<bytes>("echo", test::pattern(900'000, 1));
  ASSERT_TRUE(until([&] { return kept_.size() == 2; }));
  both_.pair.owner_process.kill();
  EXPECT_TRUE(until([&] { return asked.done() && large.done(); }));
  EXPECT_EQ(outcome(asked), errc::call_outcome_unknown);
  EXPECT_EQ(outcome(large), errc::call_outcome_unknown);
  EXPECT_EQ(peer_.under_way(), 0U);
}

TEST_F(CallOverConnection, EndsAtItsDeadlineAndTellsThePeer) {
  keep_calls();
  auto asked = peer_.start_call<int>(call_options{.timeout = 10ms}, "add", 1, 2);
  ASSERT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::timed_out);
  ASSERT_TRUE(until([&] { return kept_.size() == 2; }));
  EXPECT_EQ(kind_of(0), 1);
  EXPECT_EQ(kind_of(1), 5) << "a cancellation";
}

TEST_F(CallOverConnection, IsCanceledOnceFromEachState) {
  serve();
  int told = 0;
  const auto cancel_twice = [&](auto& call) {
    call.then([&](std::error_code) { ++told; });
    call.cancel();
    call.cancel();
    EXPECT_TRUE(call.done());
  };
  endpoint connecting = both_.pair.connect();
  const call_channel slow(connecting);
  auto waiting = slow.start_call<int>("add", 1, 2);
  cancel_twice(waiting);
  auto sent = peer_.start_call<int>("add", 1, 2);
  cancel_twice(sent);
  auto announced = peer_.start_call<bytes>("echo", test::pattern(900'000, 1));
  cancel_twice(announced);
  auto over = peer_.start_call<int>("add", 1, 2);
  ASSERT_TRUE(until([&] { return over.done(); }));
  cancel_twice(over);
  ASSERT_TRUE(until([&] { return told == 4; }));
  both_.settle();
  EXPECT_EQ(told, 4);
  EXPECT_EQ(waiting.error(), errc::canceled);
  EXPECT_EQ(sent.error(), errc::canceled);
  EXPECT_EQ(announced.error(), errc::canceled);
  EXPECT_EQ(over.result(), 3);
  EXPECT_EQ(runs_, 2) << "the one that was sent whole, and the last one";
  EXPECT_EQ(serves_.under_way(), 0U);
}

TEST_F(CallOverConnection, IsGivenUpWithItsRequest) {
  keep_calls();
  { const auto dropped = peer_.start_call<int>("add", 1, 2); }
  EXPECT_EQ(peer_.under_way(), 0U);
  ASSERT_TRUE(until([&] { return kept_.size() == 2; }));
  EXPECT_EQ(kind_of(1), 5) << "a cancellation";
}

TEST_F(CallOverConnection, DoesNotRunWhereItsArgumentsWereWithdrawn) {
  serve();
  auto large = peer_.start_call<bytes>("echo", test::pattern(1'000'000, 1));
  ASSERT_TRUE(until([&] { return serves_.under_way() == 1; }));
  large.cancel();
  EXPECT_EQ(large.error(), errc::canceled);
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3);
  EXPECT_EQ(runs_, 1) << "of add alone";
  EXPECT_TRUE(until([&] { return serves_.under_way() == 0; }));
}

TEST_F(CallOverConnection, HoldsTheBoundsOfBothSides) {
  call_server_options options;
  options.max_calls = 2;
  serve(std::move(options));
  const call_channel narrow(both_.sender, {.max_calls = 3});
  const bytes large = test::pattern(900'000, 1);
  auto first = narrow.start_call<bytes>("echo", large);
  auto second = narrow.start_call<bytes>("echo", large);
  auto third = narrow.start_call<bytes>("echo", large);
  auto fourth = narrow.start_call<int>("add", 4, 4);
  EXPECT_TRUE(fourth.done());
  EXPECT_EQ(fourth.error(), errc::busy) << "at this side";
  EXPECT_TRUE(until([&] { return third.done(); }));
  EXPECT_EQ(third.error(), errc::busy) << "at the peer";
  EXPECT_TRUE(first.result() == large);
  EXPECT_TRUE(second.result() == large);
  EXPECT_EQ(calls_.statistics().refused, 1U);
}

TEST_F(CallOverConnection, IsRefusedByThePredicate) {
  calls_.refuse([](const call_context& call, std::string_view name) {
    return call.peer != nullptr && name == "add";
  });
  serve();
  auto asked = peer_.start_call<int>("add", 1, 2);
  EXPECT_EQ(outcome(asked), errc::permission_denied);
  EXPECT_NO_THROW(peer_.call<void>("note", 1));
  EXPECT_THROW((call_stub<int(int, int)>(peer_, "add")), error);
}

TEST_F(CallOverConnection, IsRefusedByAPredicateThatThrows) {
  calls_.refuse([](const call_context&, std::string_view) -> bool { throw std::bad_alloc(); });
  serve();
  auto asked = peer_.start_call<int>("add", 1, 2);
  EXPECT_EQ(outcome(asked), errc::permission_denied);
  EXPECT_EQ(runs_, 0);
}

TEST_F(CallOverConnection, IsWaitedForByAnOrderlyClose) {
  serve();
  const bytes sent = test::pattern(900'000, 1);
  auto asked = peer_.start_call<bytes>("echo", sent);
  request closing = both_.sender.start_close();
  EXPECT_TRUE(until([&] { return closing.done(); }));
  EXPECT_FALSE(closing.error());
  EXPECT_TRUE(asked.done());
  EXPECT_TRUE(asked.result() == sent);
}

}  // namespace
}  // namespace ucx::calls
