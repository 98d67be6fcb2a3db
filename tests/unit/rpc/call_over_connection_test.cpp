// Calls between two simulated processes: what their callers get, and what runs.
#include <gtest/gtest.h>

#include <any>
#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
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

/// Keeps the tasks of a server, until a test runs them.
class kept_tasks {
 public:
  std::function<void(move_only_handler<>)> executor() {
    return [this](move_only_handler<> task) { tasks_.push_back(std::move(task)); };
  }
  std::size_t count() const noexcept { return tasks_.size(); }
  void run_all() {
    while (!tasks_.empty()) {
      move_only_handler<> next = std::move(tasks_.front());
      tasks_.pop_front();
      next();
    }
  }

 private:
  std::deque<move_only_handler<>> tasks_;
};

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
  /// Has an executor keep what is to run.
  void serve_later(std::size_t max_calls = 256) {
    call_server_options options;
    options.max_calls = max_calls;
    options.executor = tasks_.executor();
    serve(std::move(options));
  }
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
  kept_tasks tasks_;
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
  serve_later();
  auto asked = peer_.start_call<int>("add", 1, 2);
  auto large = peer_.start_call<bytes>("echo", test::pattern(900'000, 1));
  ASSERT_TRUE(until([&] { return tasks_.count() == 2; }));
  both_.pair.owner_process.kill();
  EXPECT_TRUE(until([&] { return asked.done() && large.done(); }));
  EXPECT_EQ(outcome(asked), errc::call_outcome_unknown);
  EXPECT_EQ(outcome(large), errc::call_outcome_unknown);
  EXPECT_EQ(peer_.under_way(), 0U);
}

TEST_F(CallOverConnection, EndsAtItsDeadlineAndTellsTheFunction) {
  std::optional<std::stop_token> stop;
  calls_.add("watch", [&](call_context& call) { stop = call.stop; });
  serve_later();
  auto asked = peer_.start_call<void>(call_options{.timeout = 10ms}, "watch");
  ASSERT_TRUE(until([&] { return tasks_.count() == 1; }));
  EXPECT_EQ(serves_.under_way(), 1U);
  EXPECT_TRUE(until([&] { return asked.done(); }));
  EXPECT_EQ(asked.error(), errc::timed_out);
  both_.settle();  // the cancellation arrives
  tasks_.run_all();
  both_.settle();
  EXPECT_FALSE(stop) << "it has not run";
  EXPECT_EQ(calls_.statistics().given_up, 1U);
  EXPECT_EQ(serves_.under_way(), 0U);
}

TEST_F(CallOverConnection, IsCanceledOnceFromEachState) {
  serve_later();
  int told = 0;
  const auto cancel_twice = [&](typed_call<int>& call) {
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
  auto running = peer_.start_call<int>("add", 1, 2);
  ASSERT_TRUE(until([&] { return tasks_.count() > 0; }));
  cancel_twice(running);
  auto over = peer_.start_call<int>("add", 1, 2);
  both_.settle();
  tasks_.run_all();
  ASSERT_TRUE(until([&] { return over.done(); }));
  cancel_twice(over);
  ASSERT_TRUE(until([&] { return told == 4; }));
  both_.settle();
  tasks_.run_all();
  both_.settle();
  EXPECT_EQ(told, 4);
  EXPECT_EQ(waiting.error(), errc::canceled);
  EXPECT_EQ(sent.error(), errc::canceled);
  EXPECT_EQ(running.error(), errc::canceled);
  EXPECT_EQ(over.result(), 3);
  EXPECT_EQ(runs_, 1) << "of four, three were canceled before they ran";
  EXPECT_EQ(serves_.under_way(), 0U);
}

TEST_F(CallOverConnection, IsGivenUpWithItsRequest) {
  serve_later();
  { const auto dropped = peer_.start_call<int>("add", 1, 2); }
  EXPECT_EQ(peer_.under_way(), 0U);
  both_.settle();
  tasks_.run_all();
  both_.settle();
  EXPECT_EQ(runs_, 0);
}

TEST_F(CallOverConnection, DoesNotRunWhereItsArgumentsWereWithdrawn) {
  serve();
  auto large = peer_.start_call<bytes>("echo", test::pattern(1'000'000, 1));
  large.cancel();
  EXPECT_EQ(large.error(), errc::canceled);
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3);
  EXPECT_EQ(runs_, 1) << "of add alone";
  EXPECT_EQ(serves_.under_way(), 0U);
}

TEST_F(CallOverConnection, HoldsTheBoundsOfBothSides) {
  serve_later(2);
  const call_channel narrow(both_.sender, {.max_calls = 3});
  auto first = narrow.start_call<int>("add", 1, 1);
  auto second = narrow.start_call<int>("add", 2, 2);
  auto third = narrow.start_call<int>("add", 3, 3);
  auto fourth = narrow.start_call<int>("add", 4, 4);
  EXPECT_TRUE(fourth.done());
  EXPECT_EQ(fourth.error(), errc::busy) << "at this side";
  EXPECT_TRUE(until([&] { return third.done(); }));
  EXPECT_EQ(third.error(), errc::busy) << "at the peer";
  tasks_.run_all();
  EXPECT_EQ(first.result(), 2);
  EXPECT_EQ(second.result(), 4);
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

TEST_F(CallOverConnection, IsWaitedForByAnOrderlyClose) {
  serve_later();
  auto asked = peer_.start_call<int>("add", 1, 2);
  request closing = both_.sender.start_close();
  ASSERT_TRUE(until([&] { return tasks_.count() == 1; }));
  both_.settle();
  EXPECT_FALSE(closing.done());
  tasks_.run_all();
  EXPECT_TRUE(until([&] { return closing.done(); }));
  EXPECT_FALSE(closing.error());
  EXPECT_EQ(asked.result(), 3);
}

TEST_F(CallOverConnection, LivesOnBehindHostileMessages) {
  serve_later();
  auto asked = peer_.start_call<int>("add", 1, 2);
  ASSERT_TRUE(until([&] { return tasks_.count() == 1; }));
  endpoint back = both_.back();
  const message_name to_caller("ucxio calls", 2);
  const message_name to_callee("ucxio calls", 1);
  for (std::size_t size = 0; size < 60; ++size) {
    for (const auto filling : {std::byte{0}, std::byte{1}, std::byte{0xff}}) {
      bytes head(size, filling);
      if (size >= 16) {  // its beginning is in order
        head[0] = std::byte{1};
        head[2] = static_cast<std::byte>(size);
        head[3] = std::byte{0};
      }
      const bytes body(100, filling);
      back.send(active_message{to_caller, head}, body);
      both_.sender.send(active_message{to_callee, head}, body);
    }
    both_.settle();
  }
  EXPECT_FALSE(asked.done());
  tasks_.run_all();
  EXPECT_EQ(asked.result(), 3);
  EXPECT_EQ(runs_, 1);
}

}  // namespace
}  // namespace ucx::calls
