// The ends of real processes, told to a worker of the simulation by the watcher's thread.
#include "worker/process_watcher.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/inbox_task.hpp"
#include "base/owned_descriptor.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "wire/process_identity.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::test {
namespace {

/// A child of fork() that does nothing, and does not outlive this.
class pausing_child {
 public:
  pausing_child() : id_(::fork()) {
    if (id_ != 0) return;
    // Other threads may have held any lock: nothing but bare system calls is safe here.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  pausing_child(const pausing_child&) = delete;
  pausing_child& operator=(const pausing_child&) = delete;
  ~pausing_child() { end(); }

  bool is_there() const noexcept { return id_ > 0; }
  /// Kills it; its number is free when this returns.
  void end() noexcept {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
    id_ = -1;
  }
  detail::process_identity identity() const {
    detail::process_identity made = detail::process_identity::own().value();
    made.process = static_cast<std::uint64_t>(id_);
    std::ifstream file("/proc/" + std::to_string(id_) + "/stat");
    file.ignore(std::numeric_limits<std::streamsize>::max(), ')');
    std::string skipped;
    for (int word = 3; word < 22; ++word) file >> skipped;
    file >> made.started;
    EXPECT_TRUE(file) << "when a child has started";
    return made;
  }

 private:
  ::pid_t id_;
};

class told_end final : public detail::inbox_task {
 public:
  explicit told_end(int& count) noexcept : count_(count) {}
  void run(detail::worker_core&) override { ++count_; }

 private:
  int& count_;
};

std::size_t count_of_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

/// So long the process gets `spared` further descriptors.
class scarce_descriptors {
 public:
  explicit scarce_descriptors(int spared) {
    int highest = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
      highest = std::max(highest, std::stoi(each.path().filename().string()));
    }
    do {  // until all numbers below are taken
      taken_.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
    } while (taken_.back() && taken_.back().get() <= highest);
    EXPECT_TRUE(taken_.back()) << "no descriptors to begin with";
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    ::rlimit less = before_;
    less.rlim_cur = static_cast<::rlim_t>(taken_.back().get() + 1 + spared);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &less), 0);
  }
  scarce_descriptors(const scarce_descriptors&) = delete;
  scarce_descriptors& operator=(const scarce_descriptors&) = delete;
  ~scarce_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  ::rlimit before_ = {};
  std::vector<detail::owned_descriptor> taken_;
};

/// A worker in real time, which the watcher's thread tells of ends.
class ProcessWatcher : public testing::Test {
 protected:
  void SetUp() override {
    const int lacking = error_of_descriptors();
    if (lacking == ENOSYS || lacking == EPERM) {
      GTEST_SKIP() << "no descriptors of processes: " << std::strerror(lacking);
    }
    ASSERT_EQ(lacking, 0) << std::strerror(lacking);
    ASSERT_TRUE(detail::process_identity::own()) << "the system does not tell who a process is";
    watcher_.emplace();
    before_ = count_of_descriptors();
  }
  void TearDown() override {
    watcher_.reset();
    if (!before_) return;  // skipped
    EXPECT_EQ(count_of_descriptors(), *before_) << "some are left over";
  }

  /// Returns why the system gives no descriptor of a process; 0 where it does.
  static int error_of_descriptors() {
#ifdef SYS_pidfd_open
    const detail::owned_descriptor self(static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
    return self ? 0 : errno;
#else
    return ENOSYS;
#endif
  }
  static simulated_pair_options in_real_time() {
    simulated_pair_options options;
    options.link.time = time_mode::real;
    return options;
  }
  std::unique_ptr<detail::process_watch> watch(const detail::process_identity& watched, int& told) {
    return watcher_->watch(watched, *detail::core_access::core(pair_.reader),
                           std::make_shared<told_end>(told));
  }
  /// Drives the worker until `told` is `count`, for 30 s at most; returns whether it is.
  bool until_told(const int& told, int count) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (told != count) {
      if (std::chrono::steady_clock::now() >= end) return false;
      if (!pair_.reader.progress()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }
  /// Returns when the watcher's thread has seen all ends until now: those it is told of come in
  /// order, and this is of one that ends last.
  void let_it_see() {
    pausing_child last;
    ASSERT_TRUE(last.is_there());
    int told = 0;
    const auto watching = watch(last.identity(), told);
    ASSERT_NE(watching, nullptr);
    last.end();
    EXPECT_TRUE(until_told(told, 1));
  }

  simulated_pair pair_{in_real_time()};
  std::optional<detail::process_watcher> watcher_;
  std::optional<std::size_t> before_;
};

TEST_F(ProcessWatcher, TellsOfAnEndOnce) {
  pausing_child child;
  pausing_child other;
  ASSERT_TRUE(child.is_there() && other.is_there());
  int told = 0;
  int told_of_other = 0;
  const auto watching = watch(child.identity(), told);
  const auto watching_other = watch(other.identity(), told_of_other);
  ASSERT_NE(watching, nullptr);
  ASSERT_NE(watching_other, nullptr);
  let_it_see();
  EXPECT_EQ(told, 0) << "it has not ended";
  child.end();
  EXPECT_TRUE(until_told(told, 1));
  let_it_see();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(told_of_other, 0);
  other.end();
  EXPECT_TRUE(until_told(told_of_other, 1));
  EXPECT_EQ(told, 1);
}

TEST_F(ProcessWatcher, TellsEverybodyWhoWatches) {
  pausing_child child;
  ASSERT_TRUE(child.is_there());
  int told = 0;
  std::vector<std::unique_ptr<detail::process_watch>> watching;
  for (int i = 0; i < 10; ++i) {
    watching.push_back(watch(child.identity(), told));
    ASSERT_NE(watching.back(), nullptr);
  }
  child.end();
  EXPECT_TRUE(until_told(told, 10));
}

TEST_F(ProcessWatcher, TellsAtOnceOfAProcessThatHasEnded) {
  pausing_child child;
  ASSERT_TRUE(child.is_there());
  const detail::process_identity ended = child.identity();
  child.end();
  int told = 0;
  EXPECT_EQ(watch(ended, told), nullptr);
  pair_.reader.progress();
  EXPECT_EQ(told, 1);
}

TEST_F(ProcessWatcher, TellsNobodyWhoHasForgottenIt) {
  pausing_child child;
  ASSERT_TRUE(child.is_there());
  int told = 0;
  auto watching = watch(child.identity(), told);
  ASSERT_NE(watching, nullptr);
  watching.reset();
  child.end();
  let_it_see();
  EXPECT_EQ(told, 0);
}

TEST_F(ProcessWatcher, DoesNotWatchAnotherProcessOfTheSameNumber) {
  pausing_child child;
  ASSERT_TRUE(child.is_there());
  detail::process_identity earlier = child.identity();
  --earlier.started;
  int told = 0;
  EXPECT_EQ(watch(earlier, told), nullptr);
  child.end();
  let_it_see();
  EXPECT_EQ(told, 0);
}

TEST_F(ProcessWatcher, EndsWithoutAThreadWhereNothingWasWatched) {
  watcher_.reset();
  EXPECT_EQ(count_of_descriptors(), *before_);
}

TEST_F(ProcessWatcher, EndsWithItsThread) {
  pausing_child child;
  ASSERT_TRUE(child.is_there());
  int told = 0;
  ASSERT_NE(watch(child.identity(), told), nullptr);
  EXPECT_GT(count_of_descriptors(), *before_) << "the thread has some";
  watcher_.reset();
  EXPECT_EQ(count_of_descriptors(), *before_);
  child.end();
  pair_.reader.progress();
  EXPECT_EQ(told, 0);
}

/// Each descriptor that it needs is the one that is lacking, in turn.
TEST_F(ProcessWatcher, WatchesNothingWithoutDescriptorsAndLaterAgain) {
  pausing_child child;
  ASSERT_TRUE(child.is_there());
  const detail::process_identity watched = child.identity();
  int told = 0;
  std::unique_ptr<detail::process_watch> watching;
  int spared = 0;
  for (; watching == nullptr && spared < 10; ++spared) {
    const scarce_descriptors few(spared);
    watching = watch(watched, told);
  }
  ASSERT_NE(watching, nullptr);
  EXPECT_GT(spared, 3) << "it takes three: of the process, of all ends and of the watcher's own";
  pair_.reader.progress();
  EXPECT_EQ(told, 0) << "it has not ended";
  child.end();
  EXPECT_TRUE(until_told(told, 1));
}

}  // namespace
}  // namespace ucx::test
