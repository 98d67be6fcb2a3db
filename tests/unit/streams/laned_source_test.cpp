#include "engine/laned_source.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/stream_engine.hpp"
#include "support/simulated/remote_memory.hpp"
#include "support/streams/stream_script.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using detail::byte_source;
using detail::laned_source;
using detail::stream_engine;

/// What one of the connections was asked for, and what it says.
struct connection_log {
  std::uint64_t size = 0;
  std::vector<std::uint64_t> reads = {};
  std::vector<std::uint64_t> writes = {};
  int flushes = 0;
  std::optional<std::uint64_t> unconfirmed = {};
  std::optional<std::uint64_t> forgotten = {};
  std::error_code status = {};
  bool at_once = true;
  bool follows_reads = false;  // so that nobody else can
};

/// Where all who come wait for the last.
class meeting {
 public:
  explicit meeting(std::size_t expected) : left_(expected) {}
  /// Returns whether everybody came, within a bound.
  bool attend() {
    std::unique_lock guard(mutex_);
    if (--left_ == 0) changed_.notify_all();
    return changed_.wait_for(guard, std::chrono::seconds(20), [this] { return left_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t left_;
};

/// Closes when everybody does.
class closing_source final : public byte_source {
 public:
  closing_source(meeting& with, std::atomic<std::size_t>& met, std::thread::id* closed_by = nullptr)
      : with_(with), met_(met), closed_by_(closed_by) {}
  ~closing_source() override {
    if (closed_by_ != nullptr) *closed_by_ = std::this_thread::get_id();
    if (with_.attend()) ++met_;
  }
  closing_source(const closing_source&) = delete;
  closing_source& operator=(const closing_source&) = delete;

  std::uint64_t size() const noexcept override { return 0; }
  request start_read_at(std::uint64_t, std::span<std::byte>) override { return {}; }
  request start_write_at(std::uint64_t, std::span<const std::byte>) override { return {}; }
  request start_flush() override { return {}; }
  bool abandons_reads_at_once() const noexcept override { return true; }
  std::optional<std::uint64_t> first_unconfirmed() const override { return {}; }
  void forget_writes(std::uint64_t) override {}
  std::chrono::steady_clock::time_point now() const noexcept override { return {}; }
  std::error_code status() const noexcept override { return {}; }
  std::string description() const override { return {}; }

 private:
  meeting& with_;
  std::atomic<std::size_t>& met_;
  std::thread::id* closed_by_;
};

/// Moves bytes of a simulated region, and keeps a log.
class logged_source final : public byte_source {
 public:
  logged_source(const remote_region& region, connection_log& log)
      : region_(region.share()), log_(log) {}
  std::uint64_t size() const noexcept override { return log_.size; }
  bool can_be_measured() const noexcept override { return true; }
  std::uint64_t measure(std::uint64_t, std::chrono::nanoseconds) override { return log_.size; }
  request start_read_at(std::uint64_t offset, std::span<std::byte> into) override {
    if (log_.status) throw error(log_.status, "reading");
    log_.reads.push_back(offset);
    request started = region_.start_read_at(offset, into);
    if (log_.follows_reads) started.then([](std::error_code) {});
    return started;
  }
  request start_write_at(std::uint64_t offset, std::span<const std::byte> from) override {
    log_.writes.push_back(offset);
    return region_.start_write_at(offset, from);
  }
  request start_flush() override {
    ++log_.flushes;
    return region_.start_flush();
  }
  bool abandons_reads_at_once() const noexcept override { return log_.at_once; }
  std::optional<std::uint64_t> first_unconfirmed() const override { return log_.unconfirmed; }
  void forget_writes(std::uint64_t missing) override { log_.forgotten = missing; }
  std::chrono::steady_clock::time_point now() const noexcept override { return {}; }
  std::error_code status() const noexcept override { return log_.status; }
  std::string description() const override { return "a logged region"; }

 private:
  remote_region region_;
  connection_log& log_;
};

class LanedSource : public testing::Test {
 protected:
  static constexpr std::size_t lanes = 3;

  std::unique_ptr<byte_source> make() {
    std::vector<std::unique_ptr<byte_source>> all;
    for (connection_log& each : logs_) all.push_back(source_of(each));
    return std::make_unique<laned_source>(source_of(first_), std::move(all));
  }
  std::unique_ptr<byte_source> source_of(connection_log& log) {
    log.size = memory_.bytes.size();
    return std::make_unique<logged_source>(memory_.region, log);
  }
  request read(byte_source& from, std::uint64_t offset, std::size_t length) {
    return from.start_read_at(offset, std::as_writable_bytes(std::span(into_)).first(length));
  }

  std::string text_ = sample_text(100'000, 1);
  remote_memory memory_{text_};
  connection_log first_;
  std::deque<connection_log> logs_{lanes};
  std::string into_ = std::string(100'000, '\0');
};

using offsets = std::vector<std::uint64_t>;

TEST_F(LanedSource, TakesTheLaneWithTheFewestBytesUnderWay) {
  const auto source = make();
  EXPECT_EQ(source->lanes(), lanes);
  std::vector<request> reads;
  reads.push_back(read(*source, 0, 1000));
  reads.push_back(read(*source, 1, 10));
  reads.push_back(read(*source, 2, 30));
  reads.push_back(read(*source, 3, 10));
  reads.push_back(read(*source, 4, 20));
  reads.push_back(read(*source, 5, 5));
  EXPECT_EQ(logs_[0].reads, offsets{0});
  EXPECT_EQ(logs_[1].reads, (offsets{1, 3, 4})) << "10, 20, and 40 bytes";
  EXPECT_EQ(logs_[2].reads, (offsets{2, 5}));
  for (request& each : reads) each.wait();
  reads.clear();
  memory_.settle();
  reads.push_back(read(*source, 6, 10));
  reads.push_back(read(*source, 7, 10));
  reads.push_back(read(*source, 8, 10));
  EXPECT_EQ(logs_[0].reads, (offsets{0, 6})) << "what has arrived counts no more";
  EXPECT_EQ(logs_[1].reads, (offsets{1, 3, 4, 7}));
  EXPECT_EQ(logs_[2].reads, (offsets{2, 5, 8}));
  EXPECT_TRUE(first_.reads.empty());
}

TEST_F(LanedSource, CountsWhatIsGivenUpNoMore) {
  const auto source = make();
  { const request given_up = read(*source, 0, 50'000); }
  memory_.settle();
  memory_.pair.reader.progress();
  for (std::uint64_t i = 1; i <= lanes; ++i) read(*source, i, 10).wait();
  EXPECT_EQ(logs_[0].reads, (offsets{0, 3}));
}

TEST_F(LanedSource, CountsNothingOfAReadThatItCanNotFollow) {
  const auto source = make();
  logs_[0].follows_reads = true;
  EXPECT_THROW(static_cast<void>(read(*source, 0, 50'000)), error);
  logs_[0].follows_reads = false;
  for (std::uint64_t i = 1; i <= lanes; ++i) read(*source, i, 10).wait();
  EXPECT_EQ(logs_[0].reads, (offsets{0, 3}));
}

TEST_F(LanedSource, MayGoBeforeItsReads) {
  request left;
  {
    const auto source = make();
    left = read(*source, 0, 1000);
  }
  left.wait();
  EXPECT_EQ(into_.substr(0, 1000), text_.substr(0, 1000));
}

TEST_F(LanedSource, AsksTheFirstForWhatTheLanesDoNotReach) {
  const auto source = make();
  logs_[0].size = logs_[1].size = logs_[2].size = 500;
  logs_[1].size = 600;
  read(*source, 590, 10).wait();
  read(*source, 590, 11).wait();
  EXPECT_EQ(logs_[1].reads, offsets{590});
  EXPECT_EQ(first_.reads, offsets{590});
  EXPECT_EQ(source->measure(0, {}), text_.size());
}

TEST_F(LanedSource, LeavesWritesToTheFirst) {
  const auto source = make();
  const auto bytes = std::as_bytes(std::span(into_)).first(10);
  for (std::uint64_t i = 0; i < 5; ++i) source->start_write_at(i * 10, bytes).wait();
  source->start_flush().wait();
  EXPECT_EQ(first_.writes.size(), 5U);
  EXPECT_EQ(first_.flushes, 1);
  logs_[0].unconfirmed = 300;
  EXPECT_FALSE(source->first_unconfirmed());
  first_.unconfirmed = 700;
  EXPECT_EQ(source->first_unconfirmed(), 700U);
  source->forget_writes(100);
  EXPECT_EQ(first_.forgotten, 100U);
  for (const connection_log& each : logs_) {
    EXPECT_TRUE(each.writes.empty());
    EXPECT_EQ(each.flushes, 0);
    EXPECT_FALSE(each.forgotten);
  }
}

TEST_F(LanedSource, IsLostWithAnyOfItsConnections) {
  const auto source = make();
  EXPECT_FALSE(source->status());
  EXPECT_TRUE(source->abandons_reads_at_once());
  for (connection_log* each : {&first_, &logs_[0], &logs_[2]}) {
    each->status = errc::connection_reset;
    EXPECT_EQ(source->status(), errc::connection_reset);
    each->status.clear();
    each->at_once = false;
    EXPECT_FALSE(source->abandons_reads_at_once());
    each->at_once = true;
  }
}

TEST_F(LanedSource, GivesAStreamAllItsBytesOverAllItsLanes) {
  stream_engine engine(make(), std::ios_base::in, {.buffer_size = 4096});
  EXPECT_EQ(engine.statistics().connections, lanes);
  std::size_t got = 0;
  EXPECT_EQ(engine.read(std::as_writable_bytes(std::span(into_)), got),
            stream_engine::outcome::done);
  EXPECT_EQ(got, text_.size());
  EXPECT_TRUE(into_ == text_);
  for (const connection_log& each : logs_) EXPECT_GT(each.reads.size(), 4U);
}

TEST_F(LanedSource, FailsAStreamWithALane) {
  stream_engine engine(make(), std::ios_base::in, {.buffer_size = 4096});
  logs_[1].status = errc::connection_reset;
  std::size_t got = 0;
  EXPECT_EQ(engine.read(std::as_writable_bytes(std::span(into_)), got),
            stream_engine::outcome::failed);
  EXPECT_EQ(engine.error(), errc::connection_reset);
}

TEST_F(LanedSource, ReadsNothingOnceTheFirstIsClosed) {
  const auto source = make();
  first_.status = errc::closed;
  EXPECT_THROW(static_cast<void>(read(*source, 0, 10)), error);
  for (const connection_log& each : logs_) EXPECT_TRUE(each.reads.empty());
}

// Each waits for its server: together they wait as long as one.
TEST(LanedSourceEnd, ClosesAllConnectionsAtTheSameTime) {
  constexpr std::size_t lanes = 5;
  meeting everybody(lanes + 1);
  std::atomic<std::size_t> met{0};
  std::thread::id first_closed_by;
  std::vector<std::unique_ptr<byte_source>> all;
  for (std::size_t i = 0; i < lanes; ++i) {
    all.push_back(std::make_unique<closing_source>(everybody, met));
  }
  auto first = std::make_unique<closing_source>(everybody, met, &first_closed_by);
  std::make_unique<laned_source>(std::move(first), std::move(all)).reset();
  EXPECT_EQ(met, lanes + 1);
  EXPECT_EQ(first_closed_by, std::this_thread::get_id()) << "its worker may be of one thread";
}

}  // namespace
}  // namespace ucx::test
