#include "base/activity_spin.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "support/basics/soon.hpp"
#include "support/simulated/simulated_pair.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::activity_spin;

/// In virtual time, of which each look that finds nothing takes one step.
class ActivitySpin : public testing::Test {
 protected:
  ActivitySpin() {
    for (int i = 0; i < 2; ++i) process_.api().relax();  // the network sees that nobody is busy
  }
  /// Returns how often it looks until it sleeps.
  int looks(activity_spin& spin) const {
    for (int count = 0; count < 1000; ++count) {
      if (spin.time_to_sleep()) return count;
    }
    return -1;
  }

  static link_options steps_of(std::chrono::nanoseconds step) {
    link_options link;
    link.idle_step = step;
    return link;
  }
  fake_network network_{steps_of(1us)};
  fake_process& process_ = network_.add_process("owner");
};

TEST_F(ActivitySpin, LooksForSoLongAfterActivity) {
  activity_spin spin(process_.api(), 100us, 2);
  EXPECT_EQ(looks(spin), 100) << "from the beginning";
  spin.slept();
  EXPECT_EQ(looks(spin), 0) << "what woke it found nothing";
  network_.advance(1s);
  spin.begin_again();
  EXPECT_EQ(looks(spin), 100);
  EXPECT_EQ(looks(spin), 0) << "and no more";
}

TEST_F(ActivitySpin, CountsFromTheLastActivity) {
  activity_spin spin(process_.api(), 100us, 2);
  for (int i = 0; i < 10; ++i) {
    for (int look = 0; look < 60; ++look) ASSERT_FALSE(spin.time_to_sleep());
    spin.begin_again();
  }
  EXPECT_EQ(looks(spin), 100);
}

TEST_F(ActivitySpin, NeverLooksWhereThereIsOneCore) {
  const std::uint64_t before = process_.count(call::relax);
  for (const unsigned cores : {0U, 1U}) {  // 0: the system does not tell
    activity_spin spin(process_.api(), 1h, cores);
    EXPECT_EQ(looks(spin), 0);
    spin.begin_again();
    EXPECT_EQ(looks(spin), 0);
  }
  EXPECT_EQ(process_.count(call::relax), before);
}

TEST_F(ActivitySpin, StopsWhereTheCoreIsWanted) {
  activity_spin spin(process_.api(), 100us, 2);
  process_.faults().fail(call::relax, UCS_ERR_BUSY, 4);
  EXPECT_EQ(looks(spin), 4) << "the fourth gave way to somebody";
  EXPECT_EQ(looks(spin), 0);
  spin.slept();
  spin.begin_again();
  EXPECT_EQ(looks(spin), 100) << "it may be free again";
  process_.faults().fail(call::relax, UCS_ERR_BUSY, 0);
  spin.begin_again();
  EXPECT_EQ(looks(spin), 1) << "one look finds out";
}

/// The thread of a worker, by what it calls; in real time, whose length does not count.
class SleepingThread : public testing::Test {
 protected:
  static simulated_pair_options spinning_for(std::chrono::nanoseconds longest) {
    simulated_pair_options options;
    options.link.time = time_mode::real;
    options.reader_worker.progress = progress_mode::sleeping_thread;
    options.reader_worker.spin = longest;
    return options;
  }
  /// Something happens, and is over.
  static void happen(simulated_pair& pair) {
    std::atomic<bool> ran{false};
    pair.reader.post([&] { ran = true; });
    ASSERT_TRUE(soon([&] { return ran.load(); }));
  }
};

TEST_F(SleepingThread, LooksForMoreUntilTheCoreIsWanted) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "this machine has one core";
  simulated_pair pair(spinning_for(1h));
  fake_process& process = pair.reader_process;
  const auto looks_on = [&] {
    const std::uint64_t before = process.count(call::relax);
    return soon([&] { return process.count(call::relax) > before + 100; });
  };
  happen(pair);
  EXPECT_TRUE(looks_on());
  EXPECT_EQ(process.count(call::wait_readable), 0U);
  process.faults().fail(call::relax, UCS_ERR_BUSY);
  EXPECT_TRUE(soon([&] { return process.count(call::wait_readable) > 0; }));
  const std::uint64_t asleep = process.count(call::relax);
  happen(pair);
  EXPECT_TRUE(looks_on()) << "and again after the next activity";
  EXPECT_GT(process.count(call::relax), asleep);
}

TEST_F(SleepingThread, SleepsWhereNothingHasHappenedForLong) {
  simulated_pair pair(spinning_for(1us));
  fake_process& process = pair.reader_process;
  happen(pair);
  EXPECT_TRUE(soon([&] { return process.count(call::wait_readable) > 0; }));
}

}  // namespace
}  // namespace ucx::test
