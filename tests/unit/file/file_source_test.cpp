// Real files: what can be opened, and how reading them ends.
#include "file/file_source.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <future>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "file/slow_reader.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_file.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using detail::open_file;

std::error_code error_of(const std::filesystem::path& path, std::string* text = nullptr) {
  const auto file = open_file::open(path);
  if (file) return {};
  EXPECT_TRUE(file.why().code);
  EXPECT_FALSE(file.why().text.empty());
  if (text != nullptr) *text = file.why().text;
  return file.why().code;
}

std::shared_ptr<open_file> open(const std::filesystem::path& path) {
  return open_file::open(path).or_throw();
}

TEST(OpenFile, HasTheSizeThatTheFileHad) {
  const temporary_file file(1000);
  const auto opened = open(file.path());
  EXPECT_EQ(opened->size(), 1000U);
  file.resize(2000);
  EXPECT_EQ(opened->size(), 1000U);
  EXPECT_EQ(open(file.path())->size(), 2000U);
  EXPECT_EQ(open("/proc/version")->size(), 0U);
}

TEST(OpenFile, TellsWhyItCanNot) {
  const temporary_file file(1);
  std::string text;
  EXPECT_EQ(error_of(file.path() / "below", &text), errc::no_such_name);
  EXPECT_EQ(error_of(file.path().string() + ".missing", &text), errc::no_such_name);
  EXPECT_NE(text.find(file.path().string() + ".missing"), std::string::npos) << text;
  EXPECT_EQ(error_of(std::string(5000, 'x')), errc::invalid_argument);
  if (::geteuid() != 0) {
    std::filesystem::permissions(file.path(), std::filesystem::perms::none);
    EXPECT_EQ(error_of(file.path()), errc::permission_denied);
  }
}

TEST(OpenFile, RefusesWhatIsNoRegularFile) {
  std::string text;
  EXPECT_EQ(error_of("/", &text), errc::not_supported);
  EXPECT_NE(text.find("not a regular file"), std::string::npos) << text;
  EXPECT_EQ(error_of("/dev/null"), errc::not_supported);
  const temporary_file file(1);
  // A pipe without a writer would keep a plain open waiting.
  const std::string pipe = file.path().string() + ".pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_of(pipe), errc::not_supported);
  std::filesystem::remove(pipe);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  const std::string path = file.path().string() + ".socket";
  ASSERT_LT(path.size(), sizeof name.sun_path);
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_EQ(error_of(path), errc::not_supported);
  ::close(socket);
  std::filesystem::remove(path);
}

TEST(OpenFile, ReportsThatDescriptorsRanOut) {
  const temporary_file file(1);
  rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::error_code ec = error_of(file.path());
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(ec, errc::too_many_files);
}

TEST(OpenFile, ReadsWhatIsThere) {
  const temporary_file file(1'000'000);
  const auto opened = open(file.path());
  std::vector<std::byte> into(300'000);
  EXPECT_FALSE(opened->read(650'000, into));
  EXPECT_TRUE(holds_pattern(into, 0, 650'000));
  std::fill(into.begin(), into.end(), std::byte{});
  // How much of it needs no disk is the system's affair; what it gives is right.
  const std::size_t count = opened->read_now(650'000, into);
  ASSERT_LE(count, into.size());
  EXPECT_TRUE(holds_pattern(std::span(into).first(count), 0, 650'000));
}

TEST(OpenFile, CachedFileNeedsNoDisk) {
  const temporary_file file(100'000);
  const auto opened = open(file.path());
  std::vector<std::byte> into(100'000);
  ASSERT_FALSE(opened->read(0, into));
  if (opened->read_now(0, std::span(into).first(1)) == 0) {
    GTEST_SKIP() << "this file system can not read without waiting";
  }
  EXPECT_EQ(opened->read_now(0, into), into.size());
}

TEST(OpenFile, KeepsItsGenerationWhenItLosesItsName) {
  const temporary_file file(1000);
  const auto opened = open(file.path());
  const std::uint64_t first = opened->facts().or_throw().generation;
  file.resize(2000);
  const std::uint64_t longer = opened->facts().or_throw().generation;
  EXPECT_NE(longer, first);
  // Other times of change than before, whatever steps the clock makes.
  const std::string other = file.path().string() + ".other";
  std::filesystem::create_hard_link(file.path(), other);
  const std::uint64_t linked = opened->facts().or_throw().generation;
  std::filesystem::remove(other);
  EXPECT_EQ(opened->facts().or_throw().generation, linked);
  std::this_thread::sleep_for(20ms);
  std::filesystem::remove(file.path());
  EXPECT_EQ(opened->facts().or_throw().generation, linked);
  EXPECT_EQ(opened->facts().or_throw().generation, linked);
}

TEST(OpenFile, FileThatWasCutOffIsAnError) {
  const temporary_file file(100'000);
  const auto opened = open(file.path());
  std::vector<std::byte> into(10'000);
  file.resize(55'000);
  EXPECT_FALSE(opened->read(45'000, into));
  EXPECT_EQ(opened->read(50'000, into), errc::content_changed);
  EXPECT_EQ(opened->read(90'000, into), errc::content_changed);
  EXPECT_LE(opened->read_now(50'000, into), 5'000U);
  EXPECT_EQ(opened->read_now(90'000, into), 0U);
  file.resize(0);
  EXPECT_EQ(opened->read(0, into), errc::content_changed);
}

TEST(OpenFile, DeviceThatFailsIsAnError) {
  // Address zero of this process is not mapped: the system reports EIO.
  const auto opened = open("/proc/self/mem");
  std::vector<std::byte> into(100);
  EXPECT_EQ(opened->read_now(0, into), 0U);
  EXPECT_EQ(opened->read(0, into), errc::io_error);
}

TEST(OpenFile, SurvivesItsName) {
  auto file = std::make_unique<temporary_file>(100);
  const auto opened = open(file->path());
  file.reset();
  std::vector<std::byte> into(100);
  EXPECT_FALSE(opened->read(0, into));
  EXPECT_TRUE(holds_pattern(into));
}

/// Reads when the test lets it.
class stuck_file final : public detail::file_source {
 public:
  std::size_t read_now(std::uint64_t, std::span<std::byte>) noexcept override { return 0; }
  std::error_code read(std::uint64_t, std::span<std::byte> into) noexcept override {
    std::unique_lock guard(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(guard, [this] { return free_; });
    for (std::byte& byte : into) byte = std::byte{1};
    return {};
  }
  void await(int reads) {
    std::unique_lock guard(mutex_);
    changed_.wait(guard, [&] { return begun_ >= reads; });
  }
  void let_go() {
    const std::lock_guard guard(mutex_);
    free_ = true;
    changed_.notify_all();
  }
  int begun() {
    const std::lock_guard guard(mutex_);
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool free_ = false;
  int begun_ = 0;
};

std::shared_ptr<detail::slow_read> read_of(std::shared_ptr<detail::file_source> file) {
  auto read = std::make_shared<detail::slow_read>();
  read->file = std::move(file);
  read->buffer = {100, std::make_shared<detail::staging_account>(0)};
  read->into = {read->buffer.get(), 100};
  std::fill(read->into.begin(), read->into.end(), std::byte{});
  return read;
}

TEST(ReadingThread, ReadsInOrderAndSkipsWhatIsUnwanted) {
  const auto file = std::make_shared<stuck_file>();
  const auto first = read_of(file);
  const auto second = read_of(file);
  const auto third = read_of(file);
  std::vector<const detail::slow_read*> order;
  std::promise<void> all;
  detail::reading_thread thread([&](const std::shared_ptr<detail::slow_read>& done) {
    order.push_back(done.get());
    if (order.size() == 3) all.set_value();
  });
  thread.start(first);
  thread.start(second);
  thread.start(third);
  file->await(1);
  second->unwanted = true;
  file->let_go();
  all.get_future().wait();
  EXPECT_EQ(order, (std::vector<const detail::slow_read*>{first.get(), second.get(), third.get()}));
  EXPECT_EQ(file->begun(), 2);
  EXPECT_TRUE(all_bytes_are(first->into, std::byte{1}));
  EXPECT_TRUE(all_bytes_are(second->into, std::byte{}));
}

TEST(ReadingThread, EndsWithoutADiskThatHangs) {
  const auto file = std::make_shared<stuck_file>();
  const auto running = read_of(file);
  auto waits = read_of(file);
  const std::weak_ptr<detail::slow_read> forgotten = waits;
  const auto told = std::make_shared<std::atomic<bool>>(false);
  auto thread = std::make_unique<detail::reading_thread>(
      [told](const std::shared_ptr<detail::slow_read>&) { *told = true; });
  thread->start(running);
  file->await(1);
  thread->start(std::move(waits));
  const auto begin = std::chrono::steady_clock::now();
  thread.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);
  EXPECT_TRUE(forgotten.expired());
  file->let_go();
  // The thread that was left behind lets go of what it had, and tells nobody.
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (running.use_count() > 1 && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(running.use_count(), 1);
  EXPECT_FALSE(*told);
}

}  // namespace
}  // namespace ucx::test
