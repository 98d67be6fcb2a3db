// Functions that answer after they have returned, between two simulated processes.
#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/rpc.hpp"

namespace ucx::calls {
namespace {

using bytes = std::vector<std::byte>;

class LateAnswer : public ::testing::Test {
 protected:
  LateAnswer() {
    calls_.add_dynamic("later", "(bytes)->i32",
                       [this](call_context& call, call_reader& arguments, call_writer&) {
                         size_ = arguments.bytes().size();
                         waiting_.push_back(call.defer());
                       });
    calls_.add("add", [](int a, int b) { return a + b; });
  }

  void serve(call_server_options options = {}) {
    serves_ = call_server(both_.receiver(), calls_, std::move(options));
  }
  bool until(const std::function<bool()>& done) { return both_.network().run_until(done); }
  typed_call<int> ask(std::size_t size = 10) {
    return peer_.start_call<int>("later", test::pattern(size, 1));
  }
  std::error_code outcome(typed_call<int>& call) {
    EXPECT_TRUE(until([&] { return call.done(); }));
    return call.error();
  }

  test::simulated_messages both_;
  std::size_t size_ = 0;
  call_table calls_;
  call_server serves_;
  std::vector<late_answer> waiting_;
  call_channel peer_{both_.sender};
};

TEST_F(LateAnswer, ComesAfterTheFunctionHasReturned) {
  serve();
  for (const std::size_t size : {10U, 300'000U}) {
    auto asked = ask(size);
    ASSERT_TRUE(until([&] { return waiting_.size() == 1; }));
    EXPECT_EQ(size_, size);
    EXPECT_EQ(peer_.call<int>("add", 1, 2), 3) << "others are answered meanwhile";
    EXPECT_FALSE(asked.done());
    EXPECT_EQ(serves_.under_way(), 1U);
    waiting_[0].send(call_writer().integer(42));
    EXPECT_FALSE(waiting_[0]);
    waiting_.clear();
    EXPECT_FALSE(outcome(asked));
    EXPECT_EQ(asked.result(), 42);
    EXPECT_TRUE(until([&] { return serves_.under_way() == 0; }));
  }
  EXPECT_EQ(calls_.statistics().done, 4U);
}

TEST_F(LateAnswer, MayBeGivenBeforeTheFunctionReturns) {
  calls_.add_dynamic("at_once", "()->i32", [](call_context& call, call_reader&, call_writer&) {
    late_answer now = call.defer();
    now.send(call_writer().integer(5));
    throw std::runtime_error("nothing hears this");
  });
  serve();
  EXPECT_EQ(peer_.call<int>("at_once"), 5);
  EXPECT_EQ(serves_.under_way(), 0U);
}

TEST_F(LateAnswer, MayBeAFailure) {
  serve();
  auto failed = ask();
  auto dropped = ask();
  auto wrong = ask();
  ASSERT_TRUE(until([&] { return waiting_.size() == 3; }));
  waiting_[0].fail(std::make_exception_ptr(error(errc::no_such_region, "some words")));
  waiting_[2].send(call_writer().text("no integer"));
  waiting_.clear();
  EXPECT_EQ(outcome(failed), errc::call_failed);
  EXPECT_EQ(failed.cause(), errc::no_such_region);
  EXPECT_NE(failed.description().find("some words"), std::string::npos) << failed.description();
  EXPECT_EQ(outcome(dropped), errc::call_failed);
  EXPECT_EQ(dropped.cause(), errc::canceled);
  EXPECT_EQ(outcome(wrong), errc::call_failed);
  EXPECT_EQ(calls_.statistics().failed, 3U);
}

TEST_F(LateAnswer, IsAskedForOnceWhereThereIsAConnection) {
  std::error_code twice;
  calls_.add("twice", [&](call_context& call) {
    waiting_.push_back(call.defer());
    call.defer(twice);
    return 1;
  });
  serve();
  auto asked = peer_.start_call<int>("twice");
  ASSERT_TRUE(until([&] { return waiting_.size() == 1; }));
  EXPECT_EQ(twice, errc::already_exists);
  std::error_code late;
  waiting_[0].context().defer(late);
  EXPECT_EQ(late, errc::not_supported);
  waiting_[0].send(call_writer().integer(2));
  EXPECT_FALSE(outcome(asked));
  EXPECT_EQ(asked.result(), 2) << "what the function returned is no answer";

  const remote_procedure<int(bytes)> later("later");
  call_context none;
  std::error_code ec;
  later.decode(calls_.dispatch(later.encode(bytes(3)), none), ec);
  EXPECT_EQ(ec, errc::call_failed);
}

TEST_F(LateAnswer, IsToldThatTheCallerHasGivenUp) {
  serve();
  auto asked = ask();
  ASSERT_TRUE(until([&] { return waiting_.size() == 1; }));
  EXPECT_FALSE(waiting_[0].context().stop.stop_requested());
  asked.cancel();
  EXPECT_TRUE(until([&] { return waiting_[0].context().stop.stop_requested(); }));
  EXPECT_EQ(serves_.under_way(), 0U);
  waiting_[0].send(call_writer().integer(1));
  both_.settle();
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3);
}

TEST_F(LateAnswer, CountsAsUnderWay) {
  call_server_options options;
  options.max_calls = 2;
  serve(std::move(options));
  auto first = ask();
  auto second = ask();
  auto third = ask();
  EXPECT_EQ(outcome(third), errc::busy);
  ASSERT_EQ(waiting_.size(), 2U);
  for (late_answer& each : waiting_) each.send(call_writer().integer(1));
  EXPECT_FALSE(outcome(first));
  EXPECT_FALSE(outcome(second));
}

TEST_F(LateAnswer, IsNoneWhereTheServerHasEnded) {
  serve();
  auto asked = ask();
  ASSERT_TRUE(until([&] { return waiting_.size() == 1; }));
  serves_ = call_server();
  EXPECT_EQ(outcome(asked), errc::call_failed);
  EXPECT_EQ(asked.cause(), errc::canceled);
  EXPECT_TRUE(waiting_[0].context().stop.stop_requested());
  waiting_[0].send(call_writer().integer(1));
  both_.settle();
}

TEST_F(LateAnswer, OutlivesTheConnectionOfItsCall) {
  serve();
  auto asked = ask();
  ASSERT_TRUE(until([&] { return waiting_.size() == 1; }));
  both_.pair.reader_process.kill();
  EXPECT_TRUE(until([&] { return waiting_[0].context().stop.stop_requested(); }));
  EXPECT_EQ(serves_.under_way(), 0U);
  waiting_[0].send(call_writer().integer(1));
  both_.settle();
  waiting_.clear();
}

TEST_F(LateAnswer, IsAwaitedUntilTheDeadline) {
  serve();
  auto asked = peer_.start_call<int>(call_options{.timeout = std::chrono::milliseconds(10)},
                                     "later", test::pattern(10, 1));
  ASSERT_TRUE(until([&] { return waiting_.size() == 1; }));
  both_.pair.reader_process.stop();  // it does not say that it has given up
  EXPECT_TRUE(until([&] { return waiting_[0].context().stop.stop_requested(); }));
  EXPECT_EQ(serves_.under_way(), 0U);
  waiting_[0].send(call_writer().integer(1));
  both_.pair.reader_process.resume();
  EXPECT_EQ(outcome(asked), errc::timed_out);
}

TEST_F(LateAnswer, MayBeOnItsWayWhenTheCallerGivesUp) {
  calls_.add_dynamic(
      "many_later", "()->bytes",
      [this](call_context& call, call_reader&, call_writer&) { waiting_.push_back(call.defer()); });
  serve();
  auto asked = peer_.start_call<bytes>("many_later");
  ASSERT_TRUE(until([&] { return waiting_.size() == 1; }));
  waiting_[0].send(call_writer().bytes(bytes(900'000)));
  both_.settle(std::chrono::microseconds(10));
  asked.cancel();
  EXPECT_TRUE(until([&] { return asked.done() && serves_.under_way() == 0; }));
  EXPECT_EQ(peer_.call<int>("add", 1, 2), 3) << "the connection is not lost by it";
}

TEST_F(LateAnswer, IsNotThatOfACopy) {
  std::error_code early;
  call_context copied;
  calls_.add("copies", [&](call_context& call) {
    copied = call;
    const call_context another(call);
    another.defer(early);
    return 1;
  });
  serve();
  EXPECT_EQ(peer_.call<int>("copies"), 1);
  EXPECT_EQ(early, errc::not_supported);
  std::error_code late;
  copied.defer(late);
  EXPECT_EQ(late, errc::not_supported);
}

/// Waits until the test goes on with it.
struct pause {
  std::coroutine_handle<>& paused;

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) const noexcept { paused = coroutine; }
  void await_resume() const noexcept {}
};

TEST_F(LateAnswer, IsThatOfACoroutine) {
  std::coroutine_handle<> paused;
  calls_.add("double",
             [&paused](call_context& call, int number, std::string how) -> call_task<int> {
               if (how == "throw at once") throw error(errc::no_such_name, how);
               co_await pause{paused};
               EXPECT_NE(call.peer, nullptr);
               if (how == "throw later") throw error(errc::no_such_name, how);
               co_return 2 * number;
             });
  serve();
  for (const std::string how : {"return", "throw later", "throw at once"}) {
    auto asked = peer_.start_call<int>("double", 21, how);
    if (how != "throw at once") {
      ASSERT_TRUE(until([&] { return static_cast<bool>(paused); }));
      EXPECT_EQ(peer_.call<int>("add", 1, 2), 3);
      EXPECT_FALSE(asked.done());
      std::exchange(paused, nullptr).resume();
    }
    if (how == "return") {
      EXPECT_FALSE(outcome(asked));
      EXPECT_EQ(asked.result(), 42);
    } else {
      EXPECT_EQ(outcome(asked), errc::call_failed) << how;
      EXPECT_EQ(asked.cause(), errc::no_such_name) << how;
    }
  }
  EXPECT_TRUE(until([&] { return serves_.under_way() == 0; }));
}

/// Tells when it is destroyed.
struct told_at_end {
  const std::function<void()> tell;

  ~told_at_end() { tell(); }
};

TEST_F(LateAnswer, ComesBehindTheVariablesOfACoroutine) {
  std::coroutine_handle<> paused;
  std::uint64_t seen = 0;
  calls_.add("local", [&](call_context& call) -> call_task<int> {
    const told_at_end told{
        [&] { seen = call.peer->state() == connection_state::active ? call.number : 0; }};
    co_await pause{paused};
    co_return 1;
  });
  serve();
  auto asked = peer_.start_call<int>("local");
  ASSERT_TRUE(until([&] { return static_cast<bool>(paused); }));
  std::exchange(paused, nullptr).resume();
  EXPECT_NE(seen, 0U);
  EXPECT_FALSE(outcome(asked));
  EXPECT_EQ(asked.result(), 1);
}

TEST_F(LateAnswer, HasTheTypeThatTheCoroutineReturns) {
  int captured = 40;  // the function has a copy
  calls_.add("add_two", [captured](int number) -> call_task<int> { co_return captured + number; });
  calls_.add("nothing", []() -> call_task<void> { co_return; });
  serve();
  EXPECT_EQ(peer_.call<int>("add_two", 2), 42);
  EXPECT_NO_THROW(peer_.call<void>("nothing"));
  auto other = peer_.start_call<int>("add_two", "2");
  EXPECT_EQ(outcome(other), errc::signature_differs);
  auto mistaken = peer_.start_call<int>("later", 1);
  EXPECT_EQ(outcome(mistaken), errc::signature_differs);
}

}  // namespace
}  // namespace ucx::calls
