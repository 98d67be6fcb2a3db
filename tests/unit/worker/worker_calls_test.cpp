// What a worker calls of the user's by itself, and waits for several requests, over the simulation.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/progress_loop.hpp"
#include "ucx/request.hpp"
#include "ucx/scheduled_call.hpp"
#include "ucx/stream.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

TEST(Timer, WaitForItRunsOut) {
  simulated_pair pair;
  int called = 0;
  scheduled_call timer = pair.reader.call_after(100ms, [&] { ++called; });
  const auto begin = pair.network.now();
  EXPECT_FALSE(timer.wait_for(30ms));
  EXPECT_GE(pair.network.now() - begin, 30ms);
  EXPECT_LT(pair.network.now() - begin, 100ms);
  EXPECT_FALSE(timer.wait_for(0ms));
  std::error_code ec;
  EXPECT_FALSE(timer.wait_for(-1ms, ec));
  EXPECT_FALSE(ec) << "that it has not come yet is no failure";
  EXPECT_FALSE(timer.done());
  EXPECT_EQ(called, 0);
  EXPECT_TRUE(timer.wait_for(1s));
  EXPECT_EQ(called, 1);
  scheduled_call every = pair.reader.call_in_progress(progress_phase::after,
                                                      repetition::every_round, [&] { ++called; });
  EXPECT_FALSE(every.wait_for(5ms)) << "it never is";
  EXPECT_TRUE(every.cancel());
  EXPECT_TRUE(every.wait_for(0ms));
}

// Else a loop that polls would never end.
TEST(Timer, WaitsWithoutTimeDriveItToo) {
  simulated_pair pair;
  int called = 0;
  scheduled_call timer = pair.reader.call_after(100ms, [&] { ++called; });
  pair.network.advance(101ms);
  EXPECT_TRUE(timer.wait_for(0ms));
  EXPECT_EQ(called, 1);
}

// Else a loop that asks how long it may sleep does not sleep, and is not called either.
TEST(Timer, IsCalledInTheRoundBehindADeadlineThatHasCome) {
  simulated_pair pair;
  pair.reader_process.let_cheap_clock_lag(20ms);
  int called = 0;
  const scheduled_call timer = pair.reader.call_after(100ms, [&] { ++called; });
  pair.network.advance(101ms);
  EXPECT_EQ(pair.reader.next_timeout(), 0ns);
  pair.reader.progress();
  EXPECT_EQ(called, 1);
}

TEST(Timer, CallsInTheOrderOfTheTimesAndNeverEarly) {
  simulated_pair pair;
  const auto begin = pair.network.now();
  std::vector<int> called;
  std::vector<std::chrono::nanoseconds> after;
  const auto note = [&](int which) {
    called.push_back(which);
    after.push_back(pair.network.now() - begin);
  };
  scheduled_call late = pair.reader.call_after(30ms, [&] { note(30); });
  scheduled_call soon = pair.reader.call_at(begin + 10ms, [&] { note(10); });
  scheduled_call never = pair.reader.call_after(20ms, [&] { note(20); });
  EXPECT_LE(pair.reader.next_timeout(), 10ms);
  EXPECT_GT(pair.reader.next_timeout(), 0ms);
  EXPECT_TRUE(never.cancel());
  EXPECT_TRUE(never.done());
  EXPECT_FALSE(never.cancel());
  EXPECT_FALSE(soon.done());
  EXPECT_TRUE(late.wait_for(1s));
  EXPECT_EQ(called, (std::vector{10, 30}));
  EXPECT_GE(after.at(0), 10ms);
  EXPECT_GE(after.at(1), 30ms);
  EXPECT_LE(after.at(1), 33ms);
  EXPECT_TRUE(soon.done());
  EXPECT_FALSE(soon.cancel());
}

TEST(Timer, GoesWithItsHandleUnlessThatLetsGo) {
  simulated_pair pair;
  int called = 0;
  {
    const scheduled_call dropped = pair.reader.call_after(1ms, [&] { ++called; });
  }
  pair.reader.call_after(2ms, [&] { ++called; }).detach();
  scheduled_call replaced = pair.reader.call_after(3ms, [&] { called += 10; });
  replaced = scheduled_call();
  EXPECT_TRUE(pair.network.run_until([&] {
    pair.reader.progress();
    return called > 0;
  }));
  pair.network.advance(10ms);
  while (pair.reader.progress()) {
  }
  EXPECT_EQ(called, 1);
}

TEST(Timer, CanBeCanceledAndMadeAgainInsideOfItself) {
  simulated_pair pair;
  int called = 0;
  scheduled_call self;
  std::function<void()> again = [&] {
    ++called;
    EXPECT_FALSE(self.cancel());
    if (called < 3) self = pair.reader.call_after(1ms, [&] { again(); });
  };
  self = pair.reader.call_after(1ms, [&] { again(); });
  EXPECT_TRUE(pair.network.run_until([&] {
    pair.reader.progress();
    return called == 3;
  }));
  EXPECT_TRUE(self.done());
}

TEST(RepeatingTimer, KeepsToMultiplesOfItsPeriod) {
  simulated_pair pair;
  const auto begin = pair.network.now();
  std::vector<std::chrono::nanoseconds> after;
  scheduled_call every =
      pair.reader.call_every(10ms, [&] { after.push_back(pair.network.now() - begin); });
  EXPECT_LE(pair.reader.next_timeout(), 10ms);
  EXPECT_FALSE(every.wait_for(35ms));
  ASSERT_EQ(after.size(), 3U);
  std::chrono::nanoseconds due = 10ms;
  for (const std::chrono::nanoseconds each : after) {
    EXPECT_GE(each, due);
    EXPECT_LT(each, due + 10ms);
    due += 10ms;
  }
  // The times of 40 to 80 ms pass in another handler: one late call is made.
  pair.reader.post([&] { pair.network.advance(45ms); });
  while (pair.reader.progress()) {
  }
  EXPECT_EQ(after.size(), 4U);
  EXPECT_LE(pair.reader.next_timeout(), 10ms);
  EXPECT_FALSE(every.wait_for(begin + 95ms - pair.network.now()));
  ASSERT_EQ(after.size(), 5U);
  EXPECT_GE(after.back(), 90ms);
  EXPECT_FALSE(every.done());
  EXPECT_TRUE(every.cancel());
  EXPECT_TRUE(every.done());
  EXPECT_FALSE(every.cancel());
  pair.network.advance(50ms);
  while (pair.reader.progress()) {
  }
  EXPECT_EQ(after.size(), 5U);
}

TEST(RepeatingTimer, CanEndItselfAndGoesOnBehindAnException) {
  int reports = 0;
  simulated_pair_options options;
  options.reader_worker.on_exception = [&reports](std::exception_ptr) { ++reports; };
  simulated_pair pair(options);
  int called = 0;
  scheduled_call every;
  every = pair.reader.call_every(0ns, [&] {
    if (++called == 1) throw std::runtime_error("of the program");
    if (called == 3) {
      EXPECT_TRUE(every.cancel());
    }
  });
  EXPECT_GT(pair.reader.next_timeout(), 0ns) << "a period of nothing is one of a millisecond";
  EXPECT_TRUE(every.wait_for(1s));
  EXPECT_EQ(called, 3);
  EXPECT_EQ(reports, 1);
}

TEST(RepeatingTimer, MakesOneCallOfTheTimesThatPassInACall) {
  simulated_pair pair;
  int called = 0;
  scheduled_call slow = pair.reader.call_every(10ms, [&] {
    if (++called == 1) pair.network.advance(35ms);
  });
  EXPECT_FALSE(slow.wait_for(11ms));
  while (pair.reader.progress()) {
  }
  const int behind = called;
  EXPECT_LE(behind, 2) << "for the times of 20, 30 and 40 ms";
  EXPECT_FALSE(slow.wait_for(10ms));
  EXPECT_EQ(called, behind + 1) << "for that of 50 ms";
}

TEST(RepeatingTimer, GoesWithItsWorker) {
  std::optional<simulated_pair> pair(std::in_place);
  auto held = std::make_shared<int>(0);
  scheduled_call every = pair->reader.call_every(10ms, [held] { ++*held; });
  EXPECT_FALSE(every.wait_for(25ms));
  EXPECT_EQ(*held, 2);
  pair->reader.call_every(10ms, [held] {}).detach();
  pair.reset();
  EXPECT_EQ(held.use_count(), 1) << "a function outlived its worker";
  EXPECT_TRUE(every.done());
}

TEST(Timer, OutlivesItsWorkerWithoutHarm) {
  std::optional<simulated_pair> pair(std::in_place);
  auto held = std::make_shared<int>(0);
  scheduled_call call = pair->reader.call_after(1h, [held] { ++*held; });
  scheduled_call every =
      pair->reader.call_in_progress(progress_phase::before, repetition::every_round, [held] {});
  pair.reset();
  EXPECT_EQ(held.use_count(), 1) << "a function outlived its worker";
  EXPECT_TRUE(call.done());
  EXPECT_FALSE(call.cancel());
  EXPECT_TRUE(every.wait_for(1h));
}

TEST(ProgressCall, IsMadeOnceOrInEveryRound) {
  simulated_pair pair;
  std::string order;
  scheduled_call once =
      pair.reader.call_in_progress(progress_phase::before, repetition::once, [&] { order += 'b'; });
  scheduled_call every = pair.reader.call_in_progress(
      progress_phase::after, repetition::every_round, [&] { order += 'a'; });
  pair.reader.post([&] { order += 'h'; });
  EXPECT_FALSE(pair.reader.arm()) << "somebody waits for a round";
  pair.reader.progress();
  EXPECT_EQ(order, "bha");
  EXPECT_TRUE(once.done());
  pair.reader.progress();
  EXPECT_EQ(order, "bhaa");
  EXPECT_FALSE(pair.reader.progress()) << "what is called in every round is no activity";
  EXPECT_FALSE(every.done());
  EXPECT_TRUE(every.cancel());
  pair.reader.progress();
  EXPECT_EQ(order, "bhaaa");
}

TEST(ProgressCall, OfEveryRoundCanEndItself) {
  simulated_pair pair;
  int called = 0;
  scheduled_call every;
  every = pair.reader.call_in_progress(progress_phase::before, repetition::every_round, [&] {
    if (++called < 2) return;
    EXPECT_TRUE(every.cancel());
    EXPECT_FALSE(every.cancel()) << "it was canceled";
  });
  for (int i = 0; i < 5; ++i) pair.reader.progress();
  EXPECT_EQ(called, 2);
  EXPECT_TRUE(every.done());
}

TEST(ProgressCall, IsGivenUpAfterAWhile) {
  simulated_pair pair;
  int called = 0;
  scheduled_call waiting =
      pair.reader.call_in_progress(progress_phase::after, repetition::once, [&] { ++called; });
  EXPECT_TRUE(waiting.wait_for(1s));
  EXPECT_EQ(called, 1);
  scheduled_call given_up =
      pair.reader.call_in_progress(progress_phase::before, repetition::once, [&] { ++called; });
  EXPECT_TRUE(given_up.cancel());
  pair.reader.progress();
  EXPECT_EQ(called, 1);
  pair.reader.post([&] {
    scheduled_call inside =
        pair.reader.call_in_progress(progress_phase::after, repetition::once, [] {});
    EXPECT_THROW(inside.wait_for(1s), error);
  });
  pair.reader.progress();
}

struct thrown_here {};

simulated_pair_options reporting_to(int& reports) {
  simulated_pair_options options;
  options.reader_worker.on_exception = [&reports](std::exception_ptr what) {
    try {
      std::rethrow_exception(std::move(what));
    } catch (const thrown_here&) {
      ++reports;
    }
  };
  return options;
}

TEST(ThrowingHandler, IsReportedAndProgressGoesOn) {
  int reports = 0;
  remote_memory memory(std::string(1000, 'x'), reporting_to(reports));
  std::vector<std::byte> into(100);
  int after = 0;
  memory.pair.reader.post([] { throw thrown_here(); });
  memory.pair.reader.post([&] { ++after; });
  request read = memory.region.start_read_at(0, into);
  read.then([](std::error_code) { throw thrown_here(); });
  read.wait();
  scheduled_call timer = memory.pair.reader.call_after(0ms, [] { throw thrown_here(); });
  scheduled_call every =
      memory.pair.reader.call_in_progress(progress_phase::before, repetition::every_round, [&] {
        if (after == 1) throw thrown_here();
      });
  EXPECT_TRUE(timer.wait_for(1s));
  EXPECT_EQ(after, 1);
  EXPECT_GE(reports, 4);
  EXPECT_FALSE(every.done());
  memory.region.read_at(0, into);
}

TEST(ThrowingHandler, OfALossOrAListenerHoldsNobodyUp) {
  int reports = 0;
  simulated_pair pair(reporting_to(reports));
  {
    listener door(pair.reader, socket_address("127.0.0.1:0"),
                  [](connection_request) { throw thrown_here(); });
    std::error_code ec;
    const endpoint refused(pair.owner, door.address(), {}, ec);
    EXPECT_EQ(ec, errc::connection_refused);
    EXPECT_EQ(reports, 1);
  }
  endpoint_options options;
  options.events.on_closed = [](const connection_end&) { throw thrown_here(); };
  endpoint connection = pair.connect(std::move(options));
  connection.wait_connected();
  pair.owner_process.kill();
  pair.network.run_until([&] {
    pair.reader.progress();
    return reports == 2;
  });
  EXPECT_EQ(reports, 2);
}

TEST(ThrowingHandler, OfNotificationsHearsThemAll) {
  int reports = 0;
  simulated_pair_options options = reporting_to(reports);
  options.owner_worker = options.reader_worker;
  remote_memory memory(std::string(1000, 'x'), options);
  for (int i = 0; i < 3; ++i) memory.region.notify(1);
  memory.exposed.on_notify([](const notification&) { throw thrown_here(); });
  memory.pair.network.run_until([&] { return reports == 3; });
  EXPECT_EQ(reports, 3);
}

TEST(ThrowingHandlerDeathTest, EndsTheProcessWhereNobodyIsTold) {
  EXPECT_DEATH(
      {
        simulated_pair pair;  // of the process that ends, not of its parent
        pair.reader.post([] { throw thrown_here(); });
        pair.reader.progress();
      },
      "");
}

/// Each form that takes an error code says what the other one throws.
TEST(WaitInsideAHandler, IsAnErrorThatNeedsNoException) {
  remote_memory memory(std::string(100'000, 'x'));
  worker& reader = memory.pair.reader;
  std::vector<std::byte> into(1000);
  std::array<request, 1> reads{memory.region.start_read_at(0, into)};
  scheduled_call later = reader.call_after(1h, [] {});
  progress_loop loop;
  loop.add(reader);
  std::stop_source stopped;
  int codes = 0;
  int exceptions = 0;
  const auto both = [&](auto with_code, auto without) {
    std::error_code ec;
    with_code(ec);
    if (ec == errc::would_deadlock) ++codes;
    try {
      without();
    } catch (const error& failed) {
      if (failed.code() == errc::would_deadlock) ++exceptions;
    }
  };
  reader.post([&] {
    both([&](auto& ec) { EXPECT_FALSE(reads[0].wait_for(1s, ec)); },
         [&] { reads[0].wait_for(1s); });
    both([&](auto& ec) { EXPECT_FALSE(later.wait_for(1s, ec)); }, [&] { later.wait_for(1s); });
    both([&](auto& ec) { EXPECT_FALSE(wait_any(reads, 1s, ec)); }, [&] { wait_any(reads, 1s); });
    both([&](auto& ec) { EXPECT_FALSE(wait_all(reads, 1s, ec)); }, [&] { wait_all(reads, 1s); });
    both([&](auto& ec) { reader.run(stopped.get_token(), ec); },
         [&] { reader.run(stopped.get_token()); });
    both([&](auto& ec) { loop.run(stopped.get_token(), ec); },
         [&] { loop.run(stopped.get_token()); });
    both([&](auto& ec) { EXPECT_FALSE(loop.run_once(1s, ec)); }, [&] { loop.run_once(1s); });
  });
  reader.progress();
  EXPECT_EQ(codes, 7);
  EXPECT_EQ(exceptions, 7);
  std::error_code ec = errc::busy;
  EXPECT_TRUE(wait_all(reads, 1s, ec));
  EXPECT_FALSE(ec);
  ec = errc::busy;
  EXPECT_EQ(wait_any(reads, 1s, ec), 0U);
  EXPECT_FALSE(ec);
  stopped.request_stop();
  ec = errc::busy;
  reader.run(stopped.get_token(), ec);
  EXPECT_FALSE(ec);
}

TEST(WaitForSeveral, ReturnsWhichHasEnded) {
  remote_memory memory(std::string(100'000, 'x'));
  std::vector<std::byte> into(1000);
  std::array<request, 3> reads;
  reads[0] = memory.region.start_read_at(0, into);
  reads[1] = memory.region.start_read_at(0, into);
  reads[2] = memory.region.start_read_at(0, into);
  reads[1].cancel();
  EXPECT_EQ(wait_any(reads), 1U);
  EXPECT_TRUE(wait_all(reads));
  EXPECT_EQ(wait_any(reads), 0U);
  EXPECT_TRUE(reads[2].done());
  EXPECT_EQ(wait_any({}), std::nullopt);
  EXPECT_TRUE(wait_all({}));
  EXPECT_EQ(wait_any(std::array<request, 2>()), 0U);
}

TEST(WaitForSeveral, GivesUpAtItsDeadlineAndEndsNothing) {
  remote_memory memory(std::string(100'000, 'x'));
  std::vector<std::byte> into(1000);
  memory.pair.owner_process.stop();
  std::array<request, 2> reads = {memory.region.start_read_at(0, into),
                                  memory.region.start_read_at(0, into)};
  const auto begin = memory.pair.network.now();
  EXPECT_EQ(wait_any(reads, 20ms), std::nullopt);
  EXPECT_FALSE(wait_all(reads, 20ms));
  EXPECT_LT(memory.pair.network.now() - begin, 50ms);
  memory.pair.reader.post([&] { EXPECT_THROW(wait_all(reads), error); });
  memory.pair.reader.progress();
  memory.pair.owner_process.resume();
  EXPECT_TRUE(wait_all(reads));
  EXPECT_FALSE(reads[0].error());
}

TEST(WaitForSeveral, DrivesSeveralWorkers) {
  simulated_pair_options patient;
  patient.reader_worker.heartbeat_timeout = 60s;
  remote_memory memory(std::string(100'000, 'x'), patient);
  worker second(memory.pair.reader_context, patient.reader_worker);
  const endpoint connection(second, memory.pair.owner.address());
  remote_region other(connection, memory.exposed.descriptor());
  std::vector<std::byte> into(1000);
  std::array<request, 2> reads = {memory.region.start_read_at(0, into),
                                  other.start_read_at(0, into)};
  EXPECT_TRUE(wait_all(reads));
  EXPECT_FALSE(reads[1].error());
  // And gives up at its limit, with both at work.
  memory.pair.owner_process.stop();
  reads = {memory.region.start_read_at(0, into), other.start_read_at(0, into)};
  EXPECT_EQ(wait_any(reads, 20s), std::nullopt);
  memory.pair.owner_process.resume();
  EXPECT_TRUE(wait_all(reads));
}

TEST(ProgressLoop, GoesOnWhereARoundLacksMemory) {
  remote_memory memory(std::string(100'000, 'x'));
  worker second(memory.pair.reader_context, {.progress = progress_mode::external});
  std::vector<std::byte> into(1000);
  progress_loop loop;
  loop.add(second);
  loop.add(memory.pair.reader);
  request read = memory.region.start_read_at(0, into);
  std::stop_source stop;
  read.then([&](std::error_code) { stop.request_stop(); });
  detail::core_access::core(second)->post_work([] { throw std::bad_alloc(); });
  EXPECT_NO_THROW(loop.run(stop.get_token()));
  EXPECT_TRUE(read.done());
  EXPECT_FALSE(read.error());
}

TEST(ProgressLoop, DrivesItsWorkersAndSleepsBetween) {
  remote_memory memory(std::string(100'000, 'x'));
  worker second(memory.pair.reader_context, {.progress = progress_mode::external});
  progress_loop loop;
  loop.add(memory.pair.reader);
  loop.add(second);
  loop.add(second);
  std::stop_source stop;
  int ticks = 0;
  std::vector<std::byte> into(1000);
  request read = memory.region.start_read_at(0, into);
  bool was_read = false;
  read.then([&](std::error_code ec) { was_read = !ec; });
  scheduled_call in_a_while = second.call_after(2s, [&] { ++ticks; });
  scheduled_call last = memory.pair.reader.call_after(60s, [&] { stop.request_stop(); });
  const auto begin = memory.pair.network.now();
  loop.run(stop.get_token());
  EXPECT_GE(memory.pair.network.now() - begin, 60s);
  EXPECT_EQ(ticks, 1);
  EXPECT_TRUE(was_read);
  // It looks ten times a second, were a wake-up lost, and polls a while when something happened.
  EXPECT_LT(detail::core_access::rounds(loop), 40'000U);
  const std::uint64_t rounds = detail::core_access::rounds(loop);
  std::stop_source again;
  scheduled_call end = second.call_after(120s, [&] { again.request_stop(); });
  loop.run(again.get_token());
  EXPECT_LT(detail::core_access::rounds(loop) - rounds, 40'000U);
}

TEST(ProgressLoop, MakesSingleRounds) {
  simulated_pair pair;
  progress_loop loop;
  EXPECT_FALSE(loop.run_once());
  loop.add(pair.reader);
  int called = 0;
  pair.reader.post([&] {
    ++called;
    EXPECT_THROW(loop.run_once(), error);
  });
  EXPECT_TRUE(loop.run_once());
  EXPECT_EQ(called, 1);
  while (loop.run_once()) {
  }
  const auto begin = pair.network.now();
  EXPECT_FALSE(loop.run_once(50ms));
  EXPECT_GE(pair.network.now() - begin, 50ms);
  loop.remove(pair.reader);
  pair.reader.post([&] { ++called; });
  EXPECT_FALSE(loop.run_once());
  EXPECT_EQ(called, 1);
  pair.reader.progress();
}

TEST(ProgressLoop, RefusesWorkersThatDriveThemselves) {
  progress_loop loop;
  link_options link;
  link.time = time_mode::real;
  simulated_pair_options options;
  options.link = link;
  options.reader_worker.progress = progress_mode::sleeping_thread;
  simulated_pair pair(options);
  std::error_code ec;
  loop.add(pair.reader, ec);
  EXPECT_EQ(ec, errc::invalid_argument);
  worker moved = std::move(pair.reader);
  loop.add(pair.reader, ec);
  EXPECT_EQ(ec, errc::closed);
  pair.reader = std::move(moved);
}

TEST(CancelAll, EndsWhatIsInFlight) {
  remote_memory memory(std::string(100'000, 'x'));
  const endpoint other = memory.pair.connect();
  remote_region second(other, memory.exposed.descriptor());
  memory.pair.owner_process.stop();
  std::vector<std::byte> into(1000);
  std::array<request, 3> reads = {memory.region.start_read_at(0, into),
                                  memory.region.start_read_at(0, into),
                                  second.start_read_at(0, into)};
  EXPECT_EQ(memory.connection.cancel_all(1s), 0U);
  EXPECT_EQ(reads[0].error(), errc::canceled);
  EXPECT_EQ(reads[1].error(), errc::canceled);
  EXPECT_FALSE(reads[2].done());
  notification said;
  request wait = memory.exposed.start_wait_notify(memory.pair.reader, said);
  EXPECT_EQ(memory.pair.reader.cancel_all(1s), 0U);
  EXPECT_EQ(reads[2].error(), errc::canceled);
  EXPECT_EQ(wait.error(), errc::canceled);
  memory.pair.owner_process.resume();
  memory.region.read_at(0, into);
}

TEST(Request, DescribesItself) {
  remote_memory memory(std::string(1000, 'x'));
  std::vector<std::byte> into(100);
  request read = memory.region.start_read_at(50, into);
  EXPECT_NE(read.description().find("read of 100 bytes at offset 50 of region"), std::string::npos);
  EXPECT_NE(read.description().find("session"), std::string::npos);
  read.wait();
  EXPECT_EQ(request().description(), "nothing");
}

TEST(StreamTimeout, BoundsEachTransfer) {
  remote_memory memory(std::string(1000, 'x'));
  memory.pair.owner_process.stop();
  stream_options options;
  options.timeout = 30ms;
  iostream both(memory.region, options);
  const auto begin = memory.pair.network.now();
  char c = 0;
  both.get(c);
  EXPECT_TRUE(both.bad());
  EXPECT_EQ(both.error(), errc::timed_out);
  both.clear();
  both.seekp(0);
  both << "hello" << std::flush;
  EXPECT_TRUE(both.bad());
  EXPECT_LT(memory.pair.network.now() - begin, 1s);
  memory.pair.owner_process.resume();
}

}  // namespace
}  // namespace ucx::test
