// Handlers that return an awaitable: run to their end, or refused when they are compiled, and
// never dropped in silence.
#include <gtest/gtest.h>

#include <chrono>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "support/handlers/fire.hpp"
#include "support/handlers/lazy.hpp"
#include "support/simulated/simulated_address.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

using ends_lazily = lazy (*)(std::error_code);
using accepts_lazily = lazy (*)(connection_request);
static_assert(awaitable_handler<ends_lazily, std::error_code>);
static_assert(!awaitable_handler<ends_lazily, std::string>);
static_assert(!awaitable_handler<fire (*)()>, "it runs by itself");
static_assert(!std::is_constructible_v<completion_handler, ends_lazily>);
static_assert(!std::is_constructible_v<move_only_handler<message>, lazy (*)(message)>);
static_assert(!std::is_constructible_v<move_only_handler<>, request (*)()>, "it would be given up");
static_assert(std::is_constructible_v<move_only_handler<>, fire (*)()>);
static_assert(std::is_constructible_v<move_only_handler<>, int (*)()>);
static_assert(std::is_constructible_v<accept_handler, accepts_lazily>);
static_assert(!std::is_constructible_v<accept_handler, ends_lazily>);
static_assert(!std::is_constructible_v<move_only_handler<connection_request>, accepts_lazily>);
using run_whole = decltype(run_to_end(std::declval<ends_lazily>(), {}));
static_assert(std::is_constructible_v<completion_handler, run_whole>);
static_assert(!std::is_constructible_v<move_only_handler<>, run_whole>);

/// What awaits it waits until the test resumes it.
struct until_resumed {
  std::vector<std::coroutine_handle<>>& waiting;
  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> coroutine) { waiting.push_back(coroutine); }
  void await_resume() const noexcept {}
};

TEST(AwaitableHandler, IsRunToItsEnd) {
  simulated_pair pair;
  std::vector<std::coroutine_handle<>> waiting;
  std::optional<connection_request> kept;
  std::optional<listener> door(std::in_place, pair.owner, any_port,
                               [&waiting, &kept](connection_request request) {
                                 kept = std::move(request);
                                 return until_resumed{waiting};
                               });
  endpoint knocking(pair.reader, door->address(), {.wait = connect_wait::none});
  pair.network.advance(1ms);
  ASSERT_EQ(waiting.size(), 1U);
  endpoint accepted(pair.owner, std::move(*kept));
  knocking.wait_connected();
  door.reset();
  waiting.front().resume();  // to its end: its frame is gone (the sanitizers tell)
}

TEST(AwaitableHandler, MayBeAnOptionOfAListener) {
  simulated_pair pair;
  std::vector<endpoint> accepted;
  bool flushed = false;
  const listener door(pair.owner, any_port, {.on_request = [&](connection_request request) -> lazy {
                        accepted.emplace_back(pair.owner, std::move(request));
                        co_await accepted.back().start_flush();
                        flushed = true;
                      }});
  const endpoint knocking(pair.reader, door.address());
  EXPECT_TRUE(pair.network.run_until([&] { return flushed; }));
  EXPECT_EQ(accepted.size(), 1U);
}

TEST(AwaitableHandler, OfAnyOtherKindIsRunToItsEndByName) {
  simulated_pair pair;
  endpoint connection = pair.connect();
  int ended = 0;
  const auto flush_again = [&](std::error_code ec) -> lazy {
    EXPECT_FALSE(ec);
    co_await connection.start_flush();
    ++ended;
  };
  request flush = connection.start_flush();
  flush.then(run_to_end(flush_again, {}));
  EXPECT_TRUE(pair.network.run_until([&] { return ended == 1; }));
  pair.reader.post(run_to_end([&]() -> lazy { return flush_again({}); }, {}));
  EXPECT_TRUE(pair.network.run_until([&] { return ended == 2; }));
}

TEST(AwaitableHandler, IsRunToItsEndByName) {
  simulated_pair pair;
  std::vector<std::string> told;
  pair.owner.on_message(7, run_to_end(
                               [&](message got) -> lazy {
                                 told.push_back("message of " + std::to_string(got.length()));
                                 co_return;
                               },
                               {}));
  endpoint connection =
      pair.connect({.events = {.on_established = run_to_end(
                                   [&](endpoint, connection_report report) -> lazy {
                                     told.push_back(report.watched ? "watched" : "not watched");
                                     co_return;
                                   },
                                   {})}});
  connection.wait_connected();
  pair.reader.progress();
  const std::vector<std::byte> bytes(3);
  connection.send(active_message{7}, bytes, {.until = send_until::matched});
  EXPECT_EQ(told, (std::vector<std::string>{"watched", "message of 3"}));
}

TEST(RunToEnd, KeepsHandlerArgumentsAndAwaitableUntilTheEnd) {
  std::vector<std::coroutine_handle<>> waiting;
  const auto counted = std::make_shared<int>(0);
  {
    move_only_handler<const std::string&, std::unique_ptr<int>> handler(run_to_end(
        [counted, &waiting](const std::string& text, std::unique_ptr<int> number) -> lazy {
          co_await until_resumed{waiting};
          *counted = static_cast<int>(text.size()) + *number;
        },
        {}));
    handler(std::string(100, 'x'), std::make_unique<int>(11));
  }
  EXPECT_EQ(counted.use_count(), 2) << "of what waits still";
  ASSERT_EQ(waiting.size(), 1U);
  waiting.front().resume();
  EXPECT_EQ(*counted, 111);
  EXPECT_EQ(counted.use_count(), 1);
}

TEST(RunToEnd, TellsWhatIsThrownHoweverLate) {
  std::vector<std::coroutine_handle<>> waiting;
  int told = 0;
  const auto report = [&](std::exception_ptr what) {
    EXPECT_THROW(std::rethrow_exception(std::move(what)), error);
    ++told;
  };
  move_only_handler<bool> handler(run_to_end(
      [&waiting](bool late) -> lazy {
        if (late) co_await until_resumed{waiting};
        throw error(errc::busy, "in a handler");
      },
      report));
  handler(false);
  EXPECT_EQ(told, 1);
  handler(true);
  EXPECT_EQ(told, 1);
  ASSERT_EQ(waiting.size(), 1U);
  waiting.front().resume();
  EXPECT_EQ(told, 2);
}

}  // namespace
}  // namespace ucx::test
