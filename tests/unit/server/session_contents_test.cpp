#include "server/session_contents.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/disk_thread.hpp"
#include "server/catalogue.hpp"
#include "server/session_rights.hpp"
#include "store/file_account.hpp"
#include "store/put_job.hpp"
#include "store/store_core.hpp"
#include "store/store_directory.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/replaced/short_memory.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/error.hpp"
#include "ucx/publication.hpp"
#include "ucx/server.hpp"
#include "wire/control_message.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

using namespace detail;

/// A store that is written over no connection.
class SessionContents : public testing::Test {
 protected:
  SessionContents() { EXPECT_TRUE(names_.add_store(core())); }
  ~SessionContents() override {
    const std::lock_guard guard(lock());  // what is unanswered may be answered now
    contents_.reset();
  }

  std::shared_ptr<store_core> core() {
    return std::static_pointer_cast<store_core>(core_access::core(store_));
  }
  worker_lock& lock() { return core_access::core(served_.worker())->lock(); }
  put_body files(std::size_t count, std::size_t size = 0) {
    put_body made;
    while (made.files.size() < count) {
      // Long enough to be allocated wherever it is copied.
      made.files.push_back(
          {"a directory with a name/a file with the name " + std::to_string(++made_),
           std::vector<std::byte>(size)});
    }
    return made;
  }
  bool all_are_answered(std::size_t count) {
    return soon([&] {
      const std::lock_guard guard(lock());
      return answers_ == count;
    });
  }

  const temporary_directory directory_;
  ucx_server served_;
  publication store_ = served_.publish_store(directory_ / "", {.writable = true});
  catalogue names_;
  const session_rights rights_{nullptr, nullptr};  // no rules: all is allowed
  std::size_t made_ = 0;
  std::size_t answers_ = 0;
  std::vector<std::error_code> refusals_;
  std::optional<session_contents> contents_{
      std::in_place,
      names_,
      rights_,
      60'000,
      [this](const control_header&, control_type, std::error_code why) {
        refusals_.push_back(why);
      },
      [this](const std::vector<std::byte>&) { ++answers_; }};
};

TEST_F(SessionContents, LetsAClientSendSoManyFilesAndNoMore) {
  const std::size_t messages = session_contents::most_files_unanswered / put_body::most_files;
  {
    const std::lock_guard guard(lock());  // under which nothing is answered
    for (std::size_t i = 0; i < messages; ++i) contents_->put({}, files(put_body::most_files));
    EXPECT_TRUE(refusals_.empty());
    contents_->put({}, files(1));
    ASSERT_EQ(refusals_.size(), 1U);
    EXPECT_EQ(refusals_.back(), errc::busy);
  }
  ASSERT_TRUE(all_are_answered(messages));
  const std::lock_guard guard(lock());
  contents_->put({}, files(1));
  EXPECT_EQ(refusals_.size(), 1U);
}

TEST_F(SessionContents, TakesAllFilesOfAMessageOrNone) {
  {
    const std::lock_guard guard(lock());
    contents_->put({}, files(1, store_contents::most_put - (std::size_t{1} << 20U)));
    EXPECT_TRUE(refusals_.empty());
    contents_->put({}, files(3, std::size_t{1} << 19U));
    ASSERT_EQ(refusals_.size(), 1U);
    EXPECT_EQ(refusals_.back(), errc::busy);
    contents_->put({}, files(1, 100));
    EXPECT_EQ(refusals_.size(), 1U);
  }
  EXPECT_TRUE(all_are_answered(2));
}

TEST_F(SessionContents, HasTheRoomOfAnsweredFilesAgain) {
  constexpr std::size_t nearly_all = store_contents::most_put - (std::size_t{1} << 20U);
  for (std::size_t round = 1; round <= 3; ++round) {
    {
      const std::lock_guard guard(lock());
      contents_->put({}, files(1, nearly_all));
    }
    ASSERT_TRUE(all_are_answered(round));
    EXPECT_TRUE(refusals_.empty());
  }
}

// Each allocation fails in turn, so often that a question that is counted for good shows.
TEST_F(SessionContents, CountsNothingForWantOfMemory) {
  std::size_t taken = 0;
  int failures = 0;
  for (std::size_t round = 0; round < session_contents::most_unanswered + 10; ++round) {
    bool fails = true;
    for (int spared = 0; fails; ++spared) {
      ASSERT_LT(spared, 1000);
      const std::lock_guard guard(lock());
      put_body body = files(1);
      bool is_thrown = false;
      allocations_until_failure = spared;
      try {
        contents_->put({}, std::move(body));
      } catch (const std::bad_alloc&) {
        is_thrown = true;
      }
      fails = std::exchange(allocations_until_failure, -1) < 0;
      failures += fails ? 1 : 0;
      taken += is_thrown ? 0 : 1;
      ASSERT_TRUE(refusals_.empty()) << "as of a client that has too much unanswered";
    }
    ASSERT_TRUE(all_are_answered(taken)) << round;
  }
  EXPECT_GT(failures, 0);
}

// Somebody else may publish the directory by then.
TEST_F(SessionContents, NamesNoFileWhereTheThreadWasLeftBehind) {
  const temporary_directory other;
  const std::shared_ptr<store_directory> within =
      store_directory::open(other / "", true).or_throw();
  disk_thread thread(10, [](disk_queue::answer&) {});
  const auto named = [](const char* path) { return whole_file{.path = path, .bytes = {}}; };
  put_job job{.files = {named("one"), named("two")},
              .exclusive = false,
              .durable = false,
              .directory = within,
              .quota = std::make_shared<store_quota>(1000, 0),
              .by = thread.queue()};
  for (const std::error_code& each : job()) EXPECT_FALSE(each);
  EXPECT_TRUE(std::filesystem::exists(other / "one"));
  thread.stop(std::chrono::steady_clock::now() + std::chrono::seconds(20));
  job.files = {named("three"), named("four")};
  for (const std::error_code& each : job()) EXPECT_EQ(each, errc::revoked);
  EXPECT_FALSE(std::filesystem::exists(other / "three"));
}

}  // namespace
}  // namespace ucx::test
