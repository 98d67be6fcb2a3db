#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/bytes/untouched.hpp"
#include "support/execution/own_names.hpp"
#include "support/execution/recorder.hpp"
#include "support/simulated/served_region.hpp"
#include "ucx/error.hpp"
#include "ucx/execution.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t size = 1000;

/// A connected reader, whose owner may be stopped.
struct sender_pair : served_region {
  sender_pair() : served_region(size) { connection.wait_connected(); }
  ~sender_pair() { pair.owner_process.resume(); }

  void stop_owner() { pair.owner_process.stop(); }
  auto read() { return async_read_at(region, 0, into); }
  /// Lets time pass until the receiver was called; returns whether it was.
  bool ends(const record& told) {
    return network().run_until([&] { return told.calls > 0; });
  }
  std::vector<std::byte> into = std::vector<std::byte>(size, untouched);
};

TEST(RegionSender, ReadsWritesAndFlushes) {
  sender_pair served;
  EXPECT_TRUE(sync_wait(served.pair.reader, served.read()));
  EXPECT_TRUE(holds_pattern(served.into));
  const std::vector<std::byte> from = pattern(100, 3);
  EXPECT_TRUE(sync_wait(served.pair.reader, async_write_at(served.region, 200, from)));
  EXPECT_TRUE(sync_wait(served.pair.reader, async_flush(served.region)));
  EXPECT_TRUE(std::equal(from.begin(), from.end(), served.memory.begin() + 200));
  EXPECT_TRUE(sync_wait(served.pair.reader, async_flush(served.pair.reader)));
}

TEST(RegionSender, DoesNothingUntilItsStateIsStarted) {
  sender_pair served;
  record told;
  const auto sent = served.pair.reader_process.count(call::am_send);
  {
    auto state = served.read().connect(recorder(told));
    served.network().advance(10ms);
    EXPECT_EQ(served.pair.reader_process.count(call::am_send), sent);
    EXPECT_EQ(told.calls, 0);
    auto unstarted = served.read().connect(recorder(told));
    state.start();
    EXPECT_TRUE(served.ends(told));
  }
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.how, completion::value);
}

TEST(RegionSender, MayBeConnectedManyTimes) {
  sender_pair served;
  const auto sender = served.read();
  for (int i = 0; i < 3; ++i) {
    record told;
    auto state = sender.connect(recorder(told));
    state.start();
    EXPECT_TRUE(served.ends(told));
    EXPECT_EQ(told.how, completion::value);
  }
}

TEST(RegionSender, EndsInlineWhereTheCallCanNotBegin) {
  sender_pair served;
  record told;
  auto state = async_read_at(served.region, size - 1, served.into).connect(recorder(told));
  state.start();
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.how, completion::error);
  EXPECT_EQ(told.code, errc::out_of_range);
}

TEST(RegionSender, TimesOutAsAnErrorAlsoWhereAStopIsPossible) {
  sender_pair served;
  served.stop_owner();
  record told;
  std::stop_source stop;
  auto state = async_read_at(served.region, 0, served.into, {.timeout = 50ms})
                   .connect(recorder(told, stop.get_token()));
  state.start();
  served.network().advance(60ms);
  EXPECT_TRUE(served.ends(told));
  EXPECT_EQ(told.how, completion::error);
  EXPECT_EQ(told.code, errc::timed_out);
  stop.request_stop();  // finds nothing
  EXPECT_EQ(told.calls, 1);
}

TEST(RegionSender, CanceledByAnotherThanItsStopIsAnError) {
  sender_pair served;
  served.stop_owner();
  record told;
  std::stop_source stop;
  auto state = served.read().connect(recorder(told, stop.get_token()));
  state.start();
  served.pair.reader.cancel_all();
  EXPECT_TRUE(served.ends(told));
  EXPECT_EQ(told.how, completion::error);
  EXPECT_EQ(told.code, errc::canceled);
}

TEST(RegionSender, EndsWithTheErrorOfAPeerThatDied) {
  sender_pair served;
  served.stop_owner();
  record told;
  auto state = served.read().connect(recorder(told));
  state.start();
  served.pair.owner_process.kill();
  served.network().advance(1s);
  EXPECT_TRUE(served.ends(told));
  EXPECT_EQ(told.how, completion::error);
  EXPECT_EQ(told.code, errc::connection_reset);
}

TEST(RegionSender, SendsNothingWhereTheStopCameBefore) {
  sender_pair served;
  record told;
  std::stop_source stop;
  stop.request_stop();
  const auto sent = served.pair.reader_process.count(call::am_send);
  auto state = served.read().connect(recorder(told, stop.get_token()));
  state.start();
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.how, completion::stopped);
  EXPECT_EQ(served.pair.reader_process.count(call::am_send), sent);
}

TEST(RegionSender, IsStoppedInFlightByTheThreadThatDrives) {
  sender_pair served;
  served.stop_owner();
  record told;
  std::stop_source stop;
  auto state = served.read().connect(recorder(told, stop.get_token()));
  state.start();
  // On another thread, which is gone before the worker makes a round.
  std::thread([&] { stop.request_stop(); }).join();
  EXPECT_EQ(told.calls, 0);
  EXPECT_TRUE(served.ends(told));
  EXPECT_EQ(told.how, completion::stopped);
  EXPECT_EQ(told.thread, std::this_thread::get_id());
  served.pair.owner_process.resume();
  served.network().advance(100ms);
  EXPECT_TRUE(all_bytes_are(served.into, untouched));
}

TEST(RegionSender, KeepsAnOutcomeThatCameBeforeTheStop) {
  sender_pair served;
  record told;
  std::stop_source stop;
  auto state = served.read().connect(recorder(told, stop.get_token()));
  state.start();
  EXPECT_TRUE(served.ends(told));
  stop.request_stop();
  served.network().advance(10ms);
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.how, completion::value);
}

/// Holds a state that its receiver destroys.
template <class Sender>
struct self_destroying {
  explicit self_destroying(const Sender& sender, std::stop_token stop = {}) {
    told.then = [this] { state.reset(); };
    state.reset(new recorded<Sender>(sender.connect(recorder(told, std::move(stop)))));
  }
  record told;
  std::unique_ptr<recorded<Sender>> state;
};

TEST(RegionSender, MayLoseItsStateInEachCompletion) {
  sender_pair served;
  self_destroying inline_error(async_read_at(served.region, size, served.into));
  inline_error.state->start();
  EXPECT_EQ(inline_error.told.how, completion::error);
  self_destroying value(served.read());
  value.state->start();
  EXPECT_TRUE(served.ends(value.told));
  EXPECT_EQ(value.told.how, completion::value);
  served.stop_owner();
  std::stop_source stop;
  self_destroying stopped(served.read(), stop.get_token());
  stopped.state->start();
  stop.request_stop();
  EXPECT_TRUE(served.ends(stopped.told));
  EXPECT_EQ(stopped.told.how, completion::stopped);
  EXPECT_FALSE(inline_error.state || value.state || stopped.state);
}

TEST(RegionSender, TellsTheTextOfAnErrorWhereThatIsAsked) {
  sender_pair served;
  record told;
  auto state = with_text(async_read_at(served.region, 999, served.into)).connect(recorder(told));
  state.start();
  ASSERT_TRUE(told.thrown);
  try {
    std::rethrow_exception(told.thrown);
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::out_of_range);
    EXPECT_NE(std::string(failed.what()).find("1000 bytes at offset 999"), std::string::npos)
        << failed.what();
  }
}

struct stopped_sender {
  using completion_signatures = execution::completion_signatures<execution::set_stopped_t()>;
  template <class Receiver>
  struct state {
    Receiver told;
    void start() noexcept { execution::set_stopped(std::move(told)); }
  };
  template <class Receiver>
  state<Receiver> connect(Receiver told) {
    return {std::move(told)};
  }
};

TEST(SyncWait, ThrowsTheErrorAndReturnsNothingWhereItWasStopped) {
  sender_pair served;
  try {
    sync_wait(served.pair.reader, async_read_at(served.region, size, served.into));
    FAIL() << "no error";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::out_of_range);
  }
  try {
    sync_wait(served.pair.reader, with_text(async_read_at(served.region, size, served.into)));
    FAIL() << "no error";
  } catch (const error& failed) {
    EXPECT_NE(std::string(failed.what()).find("at offset 1000"), std::string::npos);
  }
  EXPECT_FALSE(sync_wait(served.pair.reader, stopped_sender()));
}

TEST(SyncWait, IsRefusedInsideAHandler) {
  sender_pair served;
  std::error_code refused;
  served.pair.reader.post([&] {
    try {
      sync_wait(served.pair.reader, served.read());
    } catch (const error& failed) {
      refused = failed.code();
    }
  });
  served.network().advance(1ms);
  served.pair.reader.progress();
  EXPECT_EQ(refused, errc::would_deadlock);
}

}  // namespace
}  // namespace ucx::test
