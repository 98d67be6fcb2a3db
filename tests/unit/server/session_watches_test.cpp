#include "server/session_watches.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "file/file_watcher.hpp"
#include "region/exposed/file_region.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t for_ever = std::numeric_limits<std::uint64_t>::max();

class SessionWatches : public testing::Test {
 protected:
  SessionWatches() {
    region_ = file_region::make(core_access::core(pair_.owner_context), path_).or_throw();
    described_.name = "log";
    described_.type = entry_type::file;
  }

  void ask(std::uint64_t request, std::uint64_t known, std::uint64_t wait) {
    control_header asked;
    asked.type = control_type::measure;
    asked.request = request;
    watches_.measure(asked, {region_->id(), known, wait}, region_, described_);
  }
  /// Does what the watcher wants done on the worker; returns whether it came to anything in time.
  bool run_one(std::chrono::milliseconds limit = 20s) {
    disk_queue::answer next;
    {
      std::unique_lock guard(mutex_);
      if (!came_.wait_for(guard, limit, [this] { return !posted_.empty(); })) return false;
      next = std::move(posted_.front());
      posted_.pop_front();
    }
    next();
    return true;
  }

  test::simulated_pair pair_;
  const test::temporary_directory directory_;
  const std::filesystem::path path_ = directory_.make("log", "12345");
  std::shared_ptr<file_region> region_;
  entry described_;

  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<disk_queue::answer> posted_;
  file_watcher watcher_{[this](disk_queue::answer answer) {
    const std::lock_guard guard(mutex_);
    posted_.push_back(std::move(answer));
    came_.notify_all();
  }};
  std::vector<std::pair<std::uint64_t, std::error_code>> refused_;
  std::vector<std::vector<std::byte>> sent_;
  session_watches watches_{
      watcher_,
      [this](const control_header& asked, control_type type, std::error_code why) {
        EXPECT_EQ(type, control_type::described);
        refused_.emplace_back(asked.request, why);
      },
      [this](const std::vector<std::byte>& message) { sent_.push_back(message); }};
};

TEST_F(SessionWatches, AnswersWithTheFilesSizeAsItIs) {
  ask(7, 5, for_ever);
  EXPECT_FALSE(run_one(30ms));
  std::ofstream(path_, std::ios::app) << "67";
  ASSERT_TRUE(run_one());
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(decode_control(sent_[0])->request, 7U);
  const auto described = decode_described(sent_[0]);
  ASSERT_TRUE(described);
  EXPECT_EQ(described->described.name, "log");
  EXPECT_EQ(described->described.size, 7U);
  EXPECT_NE(described->described.generation, 0U);
  EXPECT_EQ(region_->size(), 7U);
  std::filesystem::resize_file(path_, 1);
  ask(8, 7, for_ever);
  ASSERT_TRUE(run_one());
  EXPECT_EQ(decode_described(sent_.back())->described.size, 1U);
  EXPECT_EQ(region_->size(), 7U) << "who reads there is to be told";
}

TEST_F(SessionWatches, LetsAClientWaitForSoManyAndNoMore) {
  for (std::uint64_t i = 0; i < session_watches::most_waiting; ++i) ask(i, 5, for_ever);
  EXPECT_TRUE(refused_.empty());
  ask(5000, 5, for_ever);
  ASSERT_EQ(refused_.size(), 1U);
  EXPECT_EQ(refused_[0], std::pair(std::uint64_t{5000}, make_error_code(errc::busy)));
}

TEST_F(SessionWatches, RefusesWhatWaitsForARegionThatIsWithdrawn) {
  ask(1, 5, for_ever);
  ask(2, 5, for_ever);
  watches_.withdrawn(region_->id() + 1);
  EXPECT_TRUE(refused_.empty());
  watches_.withdrawn(region_->id());
  ASSERT_EQ(refused_.size(), 2U);
  EXPECT_EQ(refused_[0].second, errc::revoked);
  EXPECT_EQ(refused_[1].second, errc::revoked);
  std::ofstream(path_, std::ios::app) << "67";
  EXPECT_FALSE(run_one(30ms) && !sent_.empty());
}

TEST_F(SessionWatches, HoldsNoFileOpenThatNobodyWaitsForAnyMore) {
  const std::filesystem::path descriptor =
      "/proc/self/fd/" + std::to_string(region_->source()->descriptor());
  ask(1, 5, for_ever);
  EXPECT_FALSE(run_one(30ms));
  ASSERT_EQ(std::filesystem::read_symlink(descriptor), path_);
  const std::uint64_t number = region_->id();
  region_->close();
  watches_.withdrawn(number);
  std::error_code gone;
  for (int i = 0; i < 2000 && std::filesystem::read_symlink(descriptor, gone) == path_; ++i) {
    std::this_thread::sleep_for(10ms);
  }
  EXPECT_NE(std::filesystem::read_symlink(descriptor, gone), path_);
}

TEST_F(SessionWatches, RefusesAFileThatWasClosed) {
  ask(1, 4, for_ever);
  region_->close();
  ask(2, 4, for_ever);
  ASSERT_EQ(refused_.size(), 1U);
  EXPECT_EQ(refused_[0], std::pair(std::uint64_t{2}, make_error_code(errc::revoked)));
  region_.reset();
  ASSERT_TRUE(run_one());
  ASSERT_EQ(refused_.size(), 2U);
  EXPECT_EQ(refused_[1], std::pair(std::uint64_t{1}, make_error_code(errc::revoked)));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(SessionWatches, SaysNothingOnceItIsClosed) {
  ask(1, 4, 0);
  watches_.close();
  run_one(1s);
  EXPECT_TRUE(sent_.empty());
  EXPECT_TRUE(refused_.empty());
}

}  // namespace
}  // namespace ucx::detail
