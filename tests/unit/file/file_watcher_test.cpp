#include "file/file_watcher.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <new>
#include <string>
#include <thread>

#include "support/files/temporary_directory.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto long_time = std::chrono::minutes(10);

/// A file that the system does not watch.
class odd_file final : public file_source {
 public:
  std::atomic<std::uint64_t> size{5};
  std::atomic<bool> broken{false};
  mutable std::atomic<int> looks{0};

  std::size_t read_now(std::uint64_t, std::span<std::byte>) noexcept override { return 0; }
  std::error_code read(std::uint64_t, std::span<std::byte>) noexcept override { return {}; }
  result<file_facts> facts() const noexcept override {
    ++looks;
    if (broken) return failure{errc::io_error};
    file_facts made;
    made.size = size;
    return made;
  }
};

class FileWatcher : public testing::Test {
 protected:
  struct said {
    std::error_code ec;
    file_facts facts;
  };
  std::future<said> look(std::shared_ptr<file_source> file, std::uint64_t known,
                         std::chrono::nanoseconds wait, std::uint64_t* number = nullptr) {
    const auto promise = std::make_shared<std::promise<said>>();
    const std::uint64_t given = watcher_.look(std::move(file), known, wait,
                                              [promise](std::error_code ec, file_facts facts) {
                                                promise->set_value({ec, facts});
                                              });
    EXPECT_NE(given, 0U);
    if (number != nullptr) *number = given;
    return promise->get_future();
  }
  std::shared_ptr<open_file> open() const {
    return open_file::open(directory_ / "file").or_throw();
  }
  static said soon(std::future<said>& answer) {
    if (answer.wait_for(20s) != std::future_status::ready) return {errc::timed_out, {}};
    return answer.get();
  }

  const test::temporary_directory directory_;
  const std::filesystem::path path_ = directory_.make("file", "12345");
  file_watcher watcher_{[](const disk_queue::answer& answer) { answer(); }};
};

TEST_F(FileWatcher, AnswersAtOnceWhoDoesNotWait) {
  auto now = look(open(), 5, 0ns);
  EXPECT_EQ(soon(now).facts.size, 5U);
  auto other = look(open(), 4, long_time);
  EXPECT_EQ(soon(other).facts.size, 5U);
}

TEST_F(FileWatcher, AnswersWhenTheFileIsWrittenTo) {
  auto waiting = look(open(), 5, long_time);
  auto same_file = look(open(), 5, long_time);
  // Before the time at which it is looked at anyway: the file is looked at first, then it waits.
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
  std::ofstream(path_, std::ios::app) << "67";
  EXPECT_EQ(soon(waiting).facts.size, 7U);
  EXPECT_EQ(soon(same_file).facts.size, 7U);
  auto shorter = look(open(), 7, long_time);
  std::filesystem::resize_file(path_, 1);
  EXPECT_EQ(soon(shorter).facts.size, 1U);
}

TEST_F(FileWatcher, IsToldByTheSystemOfWhatItWatches) {
  file_watcher told([](const disk_queue::answer& answer) { answer(); }, long_time);
  std::promise<said> promise;
  std::future<said> waiting = promise.get_future();
  EXPECT_NE(told.look(open(), 5, long_time,
                      [&](std::error_code ec, file_facts facts) {
                        promise.set_value({ec, facts});
                      }),
            0U);
  // The first look is over; no other one is due before the test has ended.
  EXPECT_EQ(waiting.wait_for(100ms), std::future_status::timeout);
  std::ofstream(path_, std::ios::app) << "67";
  EXPECT_EQ(soon(waiting).facts.size, 7U);
}

TEST_F(FileWatcher, DeliversAgainWhatNoMemoryWasLeftFor) {
  std::atomic<int> attempts{0};
  file_watcher poor([&](const disk_queue::answer& answer) {
    if (++attempts < 3) throw std::bad_alloc();
    answer();
  });
  std::promise<said> promise;
  std::future<said> waiting = promise.get_future();
  poor.look(open(), 4, long_time, [&](std::error_code ec, file_facts facts) {
    promise.set_value({ec, facts});
  });
  EXPECT_EQ(soon(waiting).facts.size, 5U);
  EXPECT_EQ(attempts, 3);
}

TEST_F(FileWatcher, LooksAtNothingOnceItWasStoppedBeforeItBegan) {
  watcher_.stop(steady_clock::now() + 10s);
  EXPECT_EQ(watcher_.look(open(), 4, 0ns, [](std::error_code, file_facts) { FAIL(); }), 0U);
}

TEST_F(FileWatcher, WaitsOnWhileBytesChangeAndNotTheSize) {
  auto waiting = look(open(), 5, long_time);
  std::fstream(path_) << "abc";
  EXPECT_EQ(waiting.wait_for(50ms), std::future_status::timeout);
}

TEST_F(FileWatcher, AnswersWhenTheTimeIsOver) {
  const auto begun = steady_clock::now();
  auto waiting = look(open(), 5, 30ms);
  const said answer = soon(waiting);
  EXPECT_FALSE(answer.ec);
  EXPECT_EQ(answer.facts.size, 5U);
  EXPECT_GE(steady_clock::now() - begun, 30ms);
}

TEST_F(FileWatcher, LooksNowAndThenAtWhatTheSystemDoesNotWatch) {
  const auto file = std::make_shared<odd_file>();
  auto waiting = look(file, 5, long_time);
  EXPECT_EQ(waiting.wait_for(10ms), std::future_status::timeout);
  file->size = 6;
  EXPECT_EQ(soon(waiting).facts.size, 6U);
}

TEST_F(FileWatcher, TellsThatAFileCanNotBeLookedAt) {
  const auto file = std::make_shared<odd_file>();
  file->broken = true;
  auto waiting = look(file, 5, long_time);
  EXPECT_EQ(soon(waiting).ec, errc::io_error);
}

TEST_F(FileWatcher, LetsGoOfWhatNobodyWaitsFor) {
  auto file = std::make_shared<odd_file>();
  const std::weak_ptr<odd_file> held = file;
  std::uint64_t number = 0;
  auto waiting = look(std::move(file), 5, long_time, &number);
  watcher_.forget(number);
  watcher_.forget(number + 1000);
  for (int i = 0; i < 2000 && !held.expired(); ++i) std::this_thread::sleep_for(10ms);
  EXPECT_TRUE(held.expired());
  ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready);
  EXPECT_THROW(waiting.get(), std::future_error) << "nobody answers";
}

TEST_F(FileWatcher, DeliversNothingOnceItWasStopped) {
  auto file = std::make_shared<odd_file>();
  auto waiting = look(file, 5, long_time);
  watcher_.stop(steady_clock::now() + 10s);
  file->size = 6;
  ASSERT_EQ(waiting.wait_for(20s), std::future_status::ready);
  EXPECT_THROW(waiting.get(), std::future_error);
  EXPECT_EQ(watcher_.look(file, 5, 0ns, [](std::error_code, file_facts) { FAIL(); }), 0U);
}

}  // namespace
}  // namespace ucx::detail
