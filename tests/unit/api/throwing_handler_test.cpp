// Every kind of users' code that the library calls, and what becomes of what it throws.
#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "ucx/buffer.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

struct thrown {};
[[noreturn]] void throw_it() { throw thrown(); }

/// Counts what the workers of both sides are told.
struct reports {
  simulated_pair_options options() {
    simulated_pair_options made;
    made.owner_worker.on_exception = counting(of_owner);
    made.reader_worker.on_exception = counting(of_reader);
    return made;
  }

  static std::function<void(std::exception_ptr)> counting(int& count) {
    return [&count](std::exception_ptr what) {
      EXPECT_THROW(std::rethrow_exception(std::move(what)), thrown);
      ++count;
    };
  }

  int of_owner = 0;
  int of_reader = 0;
};

TEST(ThrowingHandler, OfConnectionsIsReported) {
  reports told;
  simulated_pair pair(told.options());
  listener_options doors;
  doors.events.on_established = [](const endpoint&, const connection_report&) { throw_it(); };
  doors.events.on_closed = [](const connection_end&) { throw_it(); };
  std::optional<listener> door(std::in_place, pair.owner, any_port, std::move(doors));
  endpoint lost(
      pair.reader, door->address(),
      {.events = {.on_established = [](const endpoint&, const connection_report&) { throw_it(); },
                  .on_closed = [](const connection_end&) { throw_it(); }}});
  pair.network.advance(1ms);
  EXPECT_EQ(told.of_owner, 1);
  EXPECT_EQ(told.of_reader, 1);
  endpoint left(pair.reader, door->address());
  pair.network.advance(1ms);
  EXPECT_EQ(told.of_owner, 2);
  left.close();
  pair.network.advance(2s);
  EXPECT_EQ(told.of_owner, 3);
  door->close(close_mode::flush);
  pair.network.advance(2s);
  EXPECT_EQ(told.of_reader, 2);
}

TEST(ThrowingHandler, OfARefusalIsReported) {
  reports told;
  simulated_pair pair(told.options());
  const listener door(pair.owner, any_port, [](connection_request request) {
    request.reject(errc::busy);
    throw_it();
  });
  endpoint refused(pair.reader, door.address(),
                   {.wait = connect_wait::none,
                    .events = {.on_refused = [](const connection_end&) { throw_it(); }}});
  pair.network.advance(100ms);
  EXPECT_EQ(refused.status(), errc::busy);
  EXPECT_EQ(told.of_owner, 1);
  EXPECT_EQ(told.of_reader, 1);
}

TEST(ThrowingHandler, OfSendsIsReported) {
  reports told;
  simulated_pair_options options = told.options();
  options.owner_worker.message_window = 16U << 10U;
  simulated_messages both(options);
  message_handlers handlers;
  handlers.on_sent = [](std::uint64_t, std::error_code) { throw_it(); };
  handlers.on_writable = [] { throw_it(); };
  handlers.on_refused = [](const message_info&) { throw_it(); };
  both.sender.set_message_handlers(std::move(handlers));
  const std::vector<std::byte> bytes = pattern(1000);
  std::error_code ec;
  both.sender.post_send(1, bytes, 77, {}, ec);
  EXPECT_FALSE(ec);
  both.settle();
  EXPECT_EQ(told.of_reader, 1);
  both.sender.send(active_message{5}, bytes, {.until = send_until::reusable});  // no handler there
  both.settle();
  EXPECT_EQ(told.of_reader, 2);
  std::error_code full;
  while (!full)
    full = both.sender.start_send(2, bytes, {.backpressure = backpressure::fail}).error();
  EXPECT_EQ(full, errc::would_block);
  both.settle();
  while (both.receiver().take(tag_match::any())) {
  }
  both.settle();
  EXPECT_EQ(told.of_reader, 3);
  both.sender.send(3, bytes);  // all of them are there as before
  EXPECT_EQ(both.take(3).length(), bytes.size());
}

TEST(ThrowingHandler, OfTheThreadsBeginIsReported) {
  simulated_pair_options options;
  options.link.time = time_mode::real;
  simulated_pair pair(options);
  std::promise<void> told;
  worker driven(pair.reader_context,
                {.progress = progress_mode::sleeping_thread,
                 .on_thread_start = [] { throw_it(); },
                 .on_exception = [&](const std::exception_ptr&) { told.set_value(); }});
  ASSERT_EQ(told.get_future().wait_for(30s), std::future_status::ready);
  std::promise<void> ran;
  driven.post([&] { ran.set_value(); });
  EXPECT_EQ(ran.get_future().wait_for(30s), std::future_status::ready);
}

// Memory that frees itself, and pools that tell of theirs.

buffer throwing_when_freed(std::vector<std::byte>& memory) {
  return buffer(std::span(memory), [](std::span<std::byte>) { throw_it(); });
}

TEST(ThrowingHandler, ThatFreesABufferIsReported) {
  reports told;
  simulated_messages both(told.options());
  std::vector<std::byte> memory = pattern(1000);
  request send = both.sender.start_send(1, throwing_when_freed(memory));
  EXPECT_FALSE(both.outcome(send));
  both.settle();
  EXPECT_EQ(told.of_reader, 1);
  EXPECT_EQ(both.take(1).length(), memory.size());
  // One that a handler destroys, and one that was moved into a call that never ran.
  both.receiver().post(
      [kept = std::make_shared<buffer>(throwing_when_freed(memory))]() mutable { kept.reset(); });
  both.settle();
  EXPECT_EQ(told.of_owner, 1);
  scheduled_call never = both.receiver().call_after(1h, [kept = throwing_when_freed(memory)] {});
  both.receiver().post([&] { EXPECT_TRUE(never.cancel()); });
  both.settle();
  EXPECT_EQ(told.of_owner, 2);
}

TEST(ThrowingHandler, OfAPoolIsReportedWhereItRunsInAHandler) {
  reports told;
  simulated_messages both(told.options());
  buffer_pool pool({.size = 1000, .count = 1});
  EXPECT_THROW(pool.when_available([] { throw_it(); }), thrown);  // now
  buffer sent = pool.take();
  pool.when_available([] { throw_it(); });
  request send = both.sender.start_send(1, std::move(sent));
  EXPECT_FALSE(both.outcome(send));
  both.settle();
  EXPECT_EQ(told.of_reader, 1);
  buffer kept = pool.take();
  pool.when_available([] { throw_it(); });
  both.receiver().post([&] { kept = {}; });
  both.settle();
  EXPECT_EQ(told.of_owner, 1);
  EXPECT_EQ(pool.available(), 1U);
}

TEST(ThrowingHandlerDeathTest, OutsideOfEveryHandlerIsTheEnd) {
  std::vector<std::byte> memory(10);
  EXPECT_DEATH({ const buffer gone = throwing_when_freed(memory); }, "");
}

// Handlers that return an awaitable.

struct pause {
  std::vector<std::coroutine_handle<>>& waiting;
  bool throws = false;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) { waiting.push_back(coroutine); }
  void await_resume() const {
    if (throws) throw_it();
  }
};

TEST(ThrowingHandler, ThatReturnsAnAwaitableIsReported) {
  reports told;
  simulated_pair pair(told.options());
  std::vector<std::coroutine_handle<>> waiting;
  // Thrown by the handler itself.
  const listener throws_at_once(pair.owner, any_port, [&waiting](connection_request) -> pause {
    if (waiting.empty()) throw_it();
    return {waiting};
  });
  std::error_code ec;
  const endpoint refused(pair.reader, throws_at_once.address(), {}, ec);
  EXPECT_EQ(ec, errc::connection_refused);
  EXPECT_EQ(told.of_owner, 1);
  // Thrown by what it waited for, in a handler of the worker's.
  std::optional<listener> throws_late(
      std::in_place, pair.owner, any_port,
      [&waiting](connection_request) {
        return pause{waiting, true};
      },
      ec);
  ASSERT_FALSE(ec);
  const endpoint knocks(pair.reader, throws_late->address(), {.wait = connect_wait::none});
  pair.network.advance(1ms);
  ASSERT_EQ(waiting.size(), 1U);
  pair.owner.post(waiting[0]);
  pair.network.advance(1ms);
  EXPECT_EQ(told.of_owner, 2);
  // And by whoever resumes it when the listener has gone.
  const endpoint knocks_too(pair.reader, throws_late->address(), {.wait = connect_wait::none});
  pair.network.advance(1ms);
  ASSERT_EQ(waiting.size(), 2U);
  throws_late.reset();
  waiting[1].resume();
  EXPECT_EQ(told.of_owner, 3);
  pair.owner.progress();
}

TEST(ThrowingHandler, AwaitableIsReportedAfterItsWorker) {
  simulated_pair pair;
  int told = 0;
  std::vector<std::coroutine_handle<>> waiting;
  std::optional<worker> ending(std::in_place, pair.owner_context,
                               worker_options{.on_exception = reports::counting(told)});
  std::optional<listener> door(std::in_place, *ending, any_port,
                               [&waiting](const connection_request&) {
                                 return pause{waiting, true};
                               });
  {
    const endpoint knocks(pair.reader, door->address(), {.wait = connect_wait::none});
    for (int round = 0; round < 100 && waiting.empty(); ++round) {
      pair.network.advance(1ms);
      ending->progress();
    }
  }
  ASSERT_EQ(waiting.size(), 1U);
  door.reset();
  ending.reset();
  waiting[0].resume();
  EXPECT_EQ(told, 1);
}

// The log.

TEST(ThrowingHandler, OfTheLogLosesItsLine) {
  int lines = 0;
  simulated_pair_options options;
  options.reader_context.log = {log_level::debug, [&](log_level, std::string_view) {
                                  ++lines;
                                  throw_it();
                                }};
  simulated_pair pair(options);
  pair.connect().wait_connected();
  EXPECT_GT(lines, 1);
}

}  // namespace
}  // namespace ucx::test
