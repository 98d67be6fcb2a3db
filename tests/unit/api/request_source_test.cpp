// Requests that a program completes itself, in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <coroutine>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "ucx/request_source.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

class RequestSource : public testing::Test {
 protected:
  request_source source(std::chrono::nanoseconds timeout = 0s) {
    return request_source(pair_.reader, {.description = "asking",
                                         .timeout = timeout,
                                         .on_stop = [this](auto ec) { told_.push_back(ec); }});
  }
  void pass(std::chrono::nanoseconds time) {
    const auto until = pair_.network.now() + time;
    while (pair_.network.now() < until) {
      pair_.network.advance(1ms);
      pair_.reader.progress();
    }
  }

  std::vector<std::error_code> told_;
  simulated_pair pair_;
};

TEST_F(RequestSource, EndsItsRequestOnce) {
  request_source made = source();
  EXPECT_TRUE(made.done()) << "it was not begun";
  request asked = made.start();
  EXPECT_FALSE(asked.done());
  EXPECT_FALSE(made.done());
  EXPECT_EQ(asked.description(), "asking");
  std::optional<std::error_code> got;
  asked.then([&got](std::error_code ec) { got = ec; });
  EXPECT_TRUE(made.complete());
  EXPECT_FALSE(made.complete(errc::io_error)) << "the first end counts";
  EXPECT_TRUE(asked.done());
  EXPECT_FALSE(asked.error());
  EXPECT_FALSE(got) << "handlers run in a round";
  pair_.reader.progress();
  EXPECT_EQ(got, std::error_code());
  asked.cancel();
  pair_.reader.progress();
  EXPECT_TRUE(told_.empty());
}

TEST_F(RequestSource, TellsWhyItFailed) {
  request_source made = source();
  request asked = made.start();
  made.complete(errc::no_such_name, "asking for \"x\": it is not there");
  try {
    asked.wait();
    FAIL();
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::no_such_name);
    EXPECT_THAT(failed.what(), testing::HasSubstr("asking for \"x\": it is not there"));
  }
}

TEST_F(RequestSource, MakesARequestThatHasFailed) {
  request never = request_source::failed(errc::bad_name, "asking for \"\"");
  EXPECT_TRUE(never.done());
  EXPECT_EQ(never.error(), errc::bad_name);
  EXPECT_EQ(never.description(), "asking for \"\"");
}

TEST_F(RequestSource, BeginsOneRequest) {
  request_source made = source();
  const request first = made.start();
  EXPECT_EQ(made.start().error(), errc::invalid_argument);
  EXPECT_EQ(request_source().start().error(), errc::invalid_argument);
  EXPECT_FALSE(first.done());
}

TEST_F(RequestSource, ThatGoesEndsItsRequest) {
  std::optional made = source();
  const request asked = made->start();
  made.reset();
  EXPECT_EQ(asked.error(), errc::closed);
  std::optional unasked = source();
  unasked.reset();
}

TEST_F(RequestSource, IsMovedWithItsRequest) {
  request_source made = source();
  const request asked = made.start();
  request_source other = std::move(made);
  made = source();
  const request second = made.start();
  made = std::move(other);
  EXPECT_EQ(second.error(), errc::closed);
  EXPECT_TRUE(made.complete());
  EXPECT_TRUE(asked.done());
}

TEST_F(RequestSource, EndsWithItsDeadline) {
  request_source made = source(2s);
  const request asked = made.start();
  pass(1900ms);
  EXPECT_FALSE(asked.done());
  pass(200ms);
  EXPECT_EQ(asked.error(), errc::timed_out);
  EXPECT_THAT(told_, testing::ElementsAre(make_error_code(errc::timed_out)));
  EXPECT_FALSE(made.complete());
  EXPECT_FALSE(made.claim());
}

TEST_F(RequestSource, HasNoDeadlineWhereItShallNot) {
  request_source made = source(std::chrono::nanoseconds::max());
  request asked = made.start();
  pair_.network.advance(40s);
  pair_.reader.progress();
  EXPECT_FALSE(asked.done());
  made.complete();
}

TEST_F(RequestSource, IsCanceledAtOnce) {
  request_source made = source();
  request asked = made.start();
  asked.cancel();
  EXPECT_EQ(asked.error(), errc::canceled);
  EXPECT_THAT(told_, testing::ElementsAre(make_error_code(errc::canceled)));
}

TEST_F(RequestSource, IsToldOfARequestThatGoes) {
  request_source made = source();
  std::optional asked = made.start();
  asked.reset();
  EXPECT_TRUE(made.done());
  EXPECT_THAT(told_, testing::ElementsAre(make_error_code(errc::canceled)));
  request_source second = source();
  asked = second.start();
  asked->orphan(1);
  EXPECT_TRUE(second.done());
  EXPECT_EQ(told_.size(), 2U);
}

TEST_F(RequestSource, MayBeOwnedByWhoIsTold) {
  const auto watched = std::make_shared<int>();
  struct work {
    request_source source;
    std::shared_ptr<int> kept;
  };
  const auto begin = [&] {
    auto made = std::make_shared<work>();
    made->kept = watched;
    made->source = request_source(pair_.reader, {.on_stop = [made](std::error_code) {}});
    return std::pair(made->source.start(), std::weak_ptr(made));
  };
  auto [done, by] = begin();
  EXPECT_FALSE(by.expired());
  by.lock()->source.complete();
  EXPECT_TRUE(by.expired());
  EXPECT_FALSE(done.error());
  auto [canceled, of] = begin();
  canceled.cancel();
  EXPECT_TRUE(of.expired());
  { auto [dropped, unused] = begin(); }
  EXPECT_EQ(watched.use_count(), 1);
}

TEST_F(RequestSource, ThatIsClaimedEndsItsRequestItself) {
  request_source made = source();
  request asked = made.start();
  EXPECT_TRUE(made.claim());
  asked.cancel();
  EXPECT_FALSE(asked.done()) << "its memory is in use";
  EXPECT_EQ(told_.size(), 1U);
  EXPECT_TRUE(made.complete());
  EXPECT_FALSE(asked.error());
}

TEST_F(RequestSource, ThatIsNotClaimedAnyMoreEndsWhatWasGivenUp) {
  request_source made = source();
  request asked = made.start();
  EXPECT_TRUE(made.claim());
  made.unclaim();
  EXPECT_TRUE(made.claim());
  asked.cancel();
  EXPECT_FALSE(made.claim()) << "nothing more is to be begun";
  made.unclaim();
  EXPECT_EQ(asked.error(), errc::canceled);
  EXPECT_FALSE(made.complete());
}

TEST_F(RequestSource, IsNotClaimedForLong) {
  request_source made = source(1s);
  request asked = made.start();
  EXPECT_TRUE(made.claim());
  pass(1100ms);
  EXPECT_FALSE(asked.done());
  pass(worker_options().heartbeat_timeout);
  EXPECT_EQ(asked.error(), errc::timed_out);
  EXPECT_FALSE(made.complete());
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(RequestSource, IsOneOfManyThatAreWaitedFor) {
  request_source first = source();
  request_source second = source();
  std::vector<request> all;
  all.push_back(first.start());
  all.push_back(second.start());
  EXPECT_FALSE(wait_any(all, 1ms));
  second.complete();
  EXPECT_EQ(wait_any(all, 1ms), 1U);
  EXPECT_EQ(pair_.reader.cancel_all(), 0U);
  EXPECT_EQ(all.front().error(), errc::canceled);
}

struct fire_and_forget {
  struct promise_type {
    fire_and_forget get_return_object() noexcept { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() noexcept {}
    void unhandled_exception() noexcept { std::terminate(); }
  };
};

fire_and_forget await(request awaited, std::error_code& outcome, bool& over) {
  try {
    co_await std::move(awaited);
  } catch (const error& failed) {
    outcome = failed.code();
  }
  over = true;
}

TEST_F(RequestSource, ResumesACoroutine) {
  std::error_code outcome;
  bool over = false;
  request_source made = source();
  await(made.start(), outcome, over);
  EXPECT_FALSE(over);
  made.complete(errc::io_error);
  pair_.reader.progress();
  EXPECT_TRUE(over);
  EXPECT_EQ(outcome, errc::io_error);
}

TEST(RequestSourceOfAnyThread, EndsARequestThatAnotherOneWaitsFor) {
  const context here({.transports = {"self"}});
  worker driven(here, {.progress = progress_mode::caller, .thread_mode = thread_mode::multi});
  request_source made(driven, {.description = "asking"});
  request asked = made.start();
  std::thread other([&made] { made.complete(); });
  asked.wait();
  other.join();
  for (int i = 0; i < 200; ++i) {  // the claim holds the memory of a request that is given up
    auto memory = std::make_unique<std::array<int, 100>>();
    request_source writing(driven, {});
    request written = writing.start();
    std::thread writer([&] {
      if (!writing.claim()) return;
      memory->fill(i);
      writing.complete();
    });
    if (i % 2 == 0) written.cancel();
    written = request();
    memory.reset();
    writer.join();
  }
}

}  // namespace
}  // namespace ucx::test
