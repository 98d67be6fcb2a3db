#include "server/session_digests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "file/file_hasher.hpp"
#include "region/exposed/file_region.hpp"
#include "support/basics/effort.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/fake_file.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

class SessionDigests : public testing::Test {
 protected:
  SessionDigests() {
    file_->end = size;
    region_ = file_region::make(core_access::core(pair_.owner_context), file_, size).or_throw();
  }
  ~SessionDigests() override { hasher_.stop(std::chrono::steady_clock::now() + 20s); }

  void ask(std::uint64_t request, const digest_body& body) {
    control_header asked;
    asked.type = control_type::digest;
    asked.request = request;
    digests_.digest(asked, body, region_);
  }
  void ask(std::uint64_t request) { ask(request, {region_->id(), 0, size, 1 << 20U}); }
  /// Does what the thread wants done on the worker; returns whether it came to anything in time.
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
  std::error_code refusal() {
    EXPECT_FALSE(refused_.empty());
    return std::exchange(refused_, {}).back().second;
  }

  static constexpr std::uint64_t size = 20'000'000;  // several turns
  test::simulated_pair pair_;
  std::shared_ptr<test::fake_file> file_ = std::make_shared<test::fake_file>();
  std::shared_ptr<file_region> region_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<disk_queue::answer> posted_;
  file_hasher hasher_{[this](disk_queue::answer& answer) {
    const std::lock_guard guard(mutex_);
    posted_.push_back(std::move(answer));
    came_.notify_all();
  }};
  std::vector<std::pair<std::uint64_t, std::error_code>> refused_;
  std::vector<std::vector<std::byte>> sent_;
  session_digests digests_{
      hasher_,
      [this](const control_header& asked, control_type type, std::error_code why) {
        EXPECT_EQ(type, control_type::digested);
        refused_.emplace_back(asked.request, why);
      },
      [this](const std::vector<std::byte>& message) { sent_.push_back(message); }};
};

TEST_F(SessionDigests, AnswersWithTheHashOfEachChunkWhereverTurnsEnd) {
  file_->cached = 3'000'001;  // then the disk is asked
  constexpr std::uint64_t chunk = 3'333'333;
  ask(7, {region_->id(), 1, size - 1, chunk});
  ASSERT_TRUE(run_one());
  ASSERT_EQ(sent_.size(), 1U);
  EXPECT_EQ(decode_control(sent_[0])->request, 7U);
  const auto said = decode_digested(sent_[0]);
  ASSERT_TRUE(said);
  std::vector<std::byte> content(size);
  test::fill_pattern(content, 0, 0);
  std::vector<content_digest> expected;
  for (std::uint64_t at = 1; at < size; at += chunk) {
    expected.push_back(digest_of(std::span(content).subspan(at, std::min(chunk, size - at))));
  }
  EXPECT_EQ(said->digests, expected);
}

TEST_F(SessionDigests, RefusesWhatMakesNoSense) {
  const std::uint64_t id = region_->id();
  const std::vector<std::pair<digest_body, errc>> wrong{
      {{id, 0, 0, 1}, errc::invalid_argument},     {{id, 0, 1, 0}, errc::invalid_argument},
      {{id, 0, 257, 1}, errc::invalid_argument},   {{id, 0, ~0ULL, 1}, errc::invalid_argument},
      {{id, 0, ~0ULL, ~0ULL}, errc::out_of_range}, {{id, ~0ULL, ~0ULL, ~0ULL}, errc::out_of_range},
      {{id, size, 1, 1}, errc::out_of_range},
  };
  for (const auto& [body, why] : wrong) {
    ask(1, body);
    EXPECT_EQ(refusal(), why) << body.offset << ' ' << body.length << ' ' << body.chunk;
  }
  EXPECT_FALSE(run_one(10ms));
  ask(1, {id, 0, 256, 1});
  EXPECT_TRUE(refused_.empty());
}

TEST_F(SessionDigests, LetsAClientAskSoMuchAndNoMore) {
  const digest_body all{region_->id(), 0, test::effort(size), 1 << 20U};
  for (std::uint64_t i = 0; i < session_digests::most_unanswered; ++i) ask(i, all);
  EXPECT_TRUE(refused_.empty());
  ask(100);
  EXPECT_EQ(refusal(), errc::busy);
  for (std::uint64_t i = 0; i < session_digests::most_unanswered; ++i) ASSERT_TRUE(run_one());
  EXPECT_EQ(sent_.size(), session_digests::most_unanswered);
  ask(101);
  EXPECT_TRUE(refused_.empty());
}

TEST_F(SessionDigests, TellsWhatTheDiskSays) {
  file_->cached = 0;
  file_->broken = size - 1;
  ask(1);
  ASSERT_TRUE(run_one());
  EXPECT_EQ(refusal(), errc::io_error);
  file_->broken = file_->endless;
  file_->end = 5;
  ask(2);
  ASSERT_TRUE(run_one());
  EXPECT_EQ(refusal(), errc::content_changed);
}

TEST_F(SessionDigests, RefusesWhatIsAskedOfARegionThatIsWithdrawn) {
  ask(1);
  ask(2);
  digests_.withdrawn(region_->id() + 1);
  EXPECT_TRUE(refused_.empty());
  digests_.withdrawn(region_->id());
  ASSERT_EQ(refused_.size(), 2U);
  EXPECT_EQ(refused_[0].second, errc::revoked);
  while (run_one(30ms)) continue;
  EXPECT_TRUE(sent_.empty());
}

/// A disk that says when it is asked, and answers when it may.
class waiting_file final : public file_source {
 public:
  std::size_t read_now(std::uint64_t, std::span<std::byte>) noexcept override { return 0; }
  std::error_code read(std::uint64_t, std::span<std::byte>) noexcept override {
    std::unique_lock guard(mutex_);
    is_read_ = true;
    changed_.notify_all();
    changed_.wait_for(guard, 20s, [this] { return may_end_; });
    return {};
  }
  bool is_read() {
    std::unique_lock guard(mutex_);
    return changed_.wait_for(guard, 20s, [this] { return is_read_; });
  }
  void end() {
    const std::lock_guard guard(mutex_);
    may_end_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_read_ = false;
  bool may_end_ = false;
};

TEST_F(SessionDigests, KeepsNoFileForWhomNobodyWaits) {
  const auto held = std::make_shared<waiting_file>();
  ASSERT_TRUE(hasher_.start(held, 0, 1, 1, [](auto, auto) {}));
  ASSERT_TRUE(held->is_read());
  const long before = file_.use_count();
  for (std::uint64_t i = 0; i < session_digests::most_unanswered; ++i) ask(i);
  EXPECT_GT(file_.use_count(), before);
  digests_.withdrawn(region_->id());
  EXPECT_EQ(file_.use_count(), before);
  refused_.clear();
  // The thread still has them.
  ask(100);
  EXPECT_EQ(refusal(), errc::busy);
  held->end();
  ASSERT_TRUE(run_one());
  ASSERT_TRUE(hasher_.start(file_, 0, 1, 1, [](auto, auto) {}));
  ASSERT_TRUE(run_one());  // behind them
  ask(101);
  EXPECT_TRUE(refused_.empty());
}

TEST_F(SessionDigests, AnswersNobodyWhoHasLeft) {
  ask(1);
  digests_.close();
  while (run_one(30ms)) continue;
  EXPECT_TRUE(sent_.empty());
  EXPECT_TRUE(refused_.empty());
}

TEST_F(SessionDigests, IsBusyWhenTheThreadHasEnded) {
  hasher_.stop(std::chrono::steady_clock::now() + 20s);
  ask(1);
  EXPECT_EQ(refusal(), errc::busy);
}

}  // namespace
}  // namespace ucx::detail
