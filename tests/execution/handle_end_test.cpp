// The last handle of a worker without a thread goes before its senders have completed.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "support/execution/own_names.hpp"
#include "support/execution/recorder.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/execution.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// A connected reader whose worker's handle can go.
struct ending_reader : served_region {
  ending_reader() : served_region(1000) { connection.wait_connected(); }
  void drop_handle() {
    pair.reader_process.on_pump({});
    const worker gone = std::move(pair.reader);
  }
  std::vector<std::byte> into = std::vector<std::byte>(8);
};

/// Reads that are out of range, and so done at once. Sixty-four nest; the next waits for a round,
/// and so does each 65th after that.
class nested_reads {
 public:
  explicit nested_reads(remote_region& region, std::vector<std::byte>& into)
      : region_(region), into_(into) {}
  void next() {
    if (left_ == 0) return;
    --left_;
    auto& told = told_.emplace_back(std::make_unique<record>());
    told->then = [this] { next(); };
    states_.push_back(std::unique_ptr<state>(
        new state(async_read_at(region_, 0, into_).connect(recorder(*told)))));
    states_.back()->start();
  }
  std::size_t begun() const noexcept { return told_.size(); }
  bool all_have_ended() const { return left_ == 0 && told_.back()->calls == 1; }

 private:
  using state =
      recorded<decltype(async_read_at(std::declval<remote_region&>(), 0, std::span<std::byte>()))>;
  remote_region& region_;
  std::vector<std::byte>& into_;
  int left_ = 200;
  std::vector<std::unique_ptr<record>> told_;
  std::vector<std::unique_ptr<state>> states_;
};

TEST(HandleEnd, CompletesWhatIsQueuedWhileARegionLives) {
  ending_reader reader;
  nested_reads reads(reader.region, reader.into);
  reader.into.resize(1001);
  reads.next();
  ASSERT_EQ(reads.begun(), 65U);
  reader.drop_handle();
  EXPECT_TRUE(reads.all_have_ended());
}

TEST(HandleEnd, CompletesWhatIsQueuedWhereNothingElseLives) {
  ending_reader reader;
  nested_reads reads(reader.region, reader.into);
  reader.into.resize(1001);
  reads.next();
  ASSERT_EQ(reads.begun(), 65U);
  reader.region = remote_region();
  { const endpoint gone = std::move(reader.connection); }
  reader.drop_handle();
  EXPECT_TRUE(reads.all_have_ended());
}

TEST(HandleEnd, SeesAStopThatWasRequestedBefore) {
  ending_reader reader;
  reader.pair.owner_process.stop();
  record told;
  std::stop_source stop;
  auto state =
      async_read_at(reader.region, 0, reader.into).connect(recorder(told, stop.get_token()));
  state.start();
  stop.request_stop();
  EXPECT_EQ(told.calls, 0);
  reader.drop_handle();
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.how, completion::stopped);
  reader.pair.owner_process.resume();
}

TEST(HandleEnd, CompletesWhatTheLastHandlersQueue) {
  ending_reader reader;
  const worker_scheduler scheduler(reader.pair.reader);
  record first;
  record second;
  auto next = scheduler.schedule().connect(recorder(second));
  auto state = scheduler.schedule().connect(recorder(first));
  first.then = [&] { next.start(); };
  state.start();
  reader.drop_handle();
  EXPECT_EQ(first.how, completion::value);
  EXPECT_EQ(second.how, completion::value);
}

TEST(HandleEnd, LeavesTimersUntilTheLastObjectGoes) {
  ending_reader reader;
  record told;
  auto state = worker_scheduler(reader.pair.reader).schedule_after(1h).connect(recorder(told));
  state.start();
  reader.drop_handle();
  EXPECT_EQ(told.calls, 0);
  reader.region = remote_region();
  { const endpoint gone = std::move(reader.connection); }
  EXPECT_EQ(told.calls, 1);
  EXPECT_EQ(told.how, completion::stopped);
}

}  // namespace
}  // namespace ucx::test
