#include "file/file_watcher.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <map>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "base/owned_descriptor.hpp"

namespace ucx::detail {

class file_watcher::watch {
 public:
  using clock = std::chrono::steady_clock;

  struct wait {
    std::uint64_t known = 0;
    clock::time_point until;
    // Made where it can be told that there is no memory for them.
    std::shared_ptr<result<file_facts>> seen_last;
    disk_queue::answer answer;
    int watched = -1;  // inotify's number of the file; -1: it says nothing of it
    clock::time_point next_look = {};
  };

  watch(std::function<void(disk_queue::answer)> deliver, std::chrono::milliseconds watched)
      : deliver_(std::move(deliver)), watched_period_(watched) {}

  /// Returns false where the system has no descriptors left to wake the thread by.
  bool open() noexcept {
    waking_ = owned_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    notices_ = owned_descriptor(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    return static_cast<bool>(waking_);
  }

  std::uint64_t add(std::shared_ptr<file_source> file, wait&& wanted) {
    const std::lock_guard guard(mutex_);
    if (stopped_) return 0;
    const auto held = files_.emplace(last_number_ + 1, std::move(file)).first;
    try {
      added_.emplace(last_number_ + 1, std::move(wanted));
    } catch (const std::bad_alloc&) {
      files_.erase(held);
      throw;
    }
    wake();
    return ++last_number_;
  }

  void forget(std::uint64_t number) noexcept {
    if (!drop(number)) return;
    const std::lock_guard guard(mutex_);
    forgot_ = true;
    wake();
  }

  void run() {
    while (take_news()) {
      look_at_all();
      sleep();
      read_notices();
    }
    waits_.clear();
    wait_map left;
    file_map files;
    const std::lock_guard guard(mutex_);
    left.swap(added_);
    files.swap(files_);
    ended_ = true;
    changed_.notify_all();
  }

  bool stop(clock::time_point until) noexcept {
    std::unique_lock guard(mutex_);
    stopped_ = true;
    wake();
    return changed_.wait_until(guard, until, [this] { return ended_; });
  }

 private:
  using wait_map = std::map<std::uint64_t, wait>;
  using file_map = std::map<std::uint64_t, std::shared_ptr<file_source>>;

  void wake() noexcept {
    const std::uint64_t one = 1;
    // It is awake already where this fails.
    [[maybe_unused]] const ssize_t written = ::write(waking_.get(), &one, sizeof one);
  }

  /// Returns false when there is nothing more to do.
  bool take_news() {
    wait_map added;
    bool forgot = false;
    {
      const std::lock_guard guard(mutex_);
      if (stopped_) return false;
      added.swap(added_);
      forgot = std::exchange(forgot_, false);
    }
    for (auto& [number, wanted] : added) {
      // Watched before it is looked at: what changes in between is noticed.
      const std::shared_ptr<file_source> file = file_of(number);
      if (file && wanted.until > clock::now()) wanted.watched = begin_to_watch(*file);
    }
    waits_.merge(added);
    if (!forgot) return true;
    for (auto at = waits_.begin(); at != waits_.end();) {
      at = file_of(at->first) ? std::next(at) : end(at);
    }
    return true;
  }

  bool drop(std::uint64_t number) noexcept {
    file_map::node_type gone;  // outlives the lock: closing a file may take long
    const std::lock_guard guard(mutex_);
    gone = files_.extract(number);
    return !gone.empty();
  }

  /// Returns null where it was forgotten.
  std::shared_ptr<file_source> file_of(std::uint64_t number) {
    const std::lock_guard guard(mutex_);
    const auto found = files_.find(number);
    return found == files_.end() ? nullptr : found->second;
  }

  int begin_to_watch(const file_source& file) noexcept {
    if (!notices_ || file.descriptor() < 0) return -1;
    // By the descriptor: whatever has the file's name by now is another one.
    std::array<char, 40> open_one = {};
    std::snprintf(open_one.data(), open_one.size(), "/proc/self/fd/%d", file.descriptor());
    const int watched = ::inotify_add_watch(notices_.get(), open_one.data(), IN_MODIFY);
    if (watched < 0) return -1;
    try {
      ++users_[watched];
      return watched;
    } catch (const std::bad_alloc&) {
      ::inotify_rm_watch(notices_.get(), watched);  // no other wait uses it
      return -1;
    }
  }

  wait_map::iterator end(wait_map::iterator over) {
    drop(over->first);
    const int watched = over->second.watched;
    if (watched >= 0 && --users_[watched] == 0) {
      users_.erase(watched);
      ::inotify_rm_watch(notices_.get(), watched);
    }
    return waits_.erase(over);
  }

  void look_at_all() {
    for (auto at = waits_.begin(); at != waits_.end();) {
      const clock::time_point due = std::min(at->second.next_look, at->second.until);
      at = due <= clock::now() && look_at(at->first, at->second) ? end(at) : std::next(at);
    }
  }

  /// Returns whether nothing waits for it any more.
  bool look_at(std::uint64_t number, wait& wanted) {
    const std::shared_ptr<file_source> file = file_of(number);
    if (!file) return true;
    const result<file_facts> facts = file->facts();
    const clock::time_point now = clock::now();
    if (facts && facts->size == wanted.known && now < wanted.until) {
      wanted.next_look = now + (wanted.watched >= 0 ? watched_period_ : unwatched_period);
      return false;
    }
    *wanted.seen_last = facts;
    // Under the lock, so that it does not begin when stop() has returned.
    const std::lock_guard guard(mutex_);
    try {
      if (!stopped_) deliver_(wanted.answer);
      return true;
    } catch (const std::bad_alloc&) {
      wanted.next_look = wanted.until = now + unwatched_period;
      return false;
    }
  }

  void sleep() noexcept {
    clock::time_point until = clock::time_point::max();
    for (const auto& [number, each] : waits_) {
      until = std::min({until, each.next_look, each.until});
    }
    int limit = -1;
    if (until != clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
      limit = static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, watched_period.count()));
    }
    std::array<::pollfd, 2> sources{
        {{waking_.get(), POLLIN, 0}, {notices_ ? notices_.get() : -1, POLLIN, 0}}};
    ::poll(sources.data(), sources.size(), limit);
    std::uint64_t woken = 0;
    [[maybe_unused]] const ssize_t got = ::read(waking_.get(), &woken, sizeof woken);
  }

  void read_notices() noexcept {
    if (!notices_) return;
    alignas(::inotify_event) std::array<char, 4096> told;
    for (;;) {
      const ssize_t got = ::read(notices_.get(), told.data(), told.size());
      if (got <= 0) break;
      for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
        ::inotify_event notice = {};
        std::memcpy(&notice, told.data() + at, sizeof notice);
        note((notice.mask & IN_Q_OVERFLOW) != 0 ? -1 : notice.wd);
        at += sizeof notice + notice.len;
      }
    }
  }

  /// The file was written to; -1: it is not known which.
  void note(int watched) noexcept {
    for (auto& [number, each] : waits_) {
      if (watched < 0 || each.watched == watched) each.next_look = {};
    }
  }

  const std::function<void(disk_queue::answer)> deliver_;
  const std::chrono::milliseconds watched_period_;
  owned_descriptor waking_;
  owned_descriptor notices_;

  std::mutex mutex_;
  std::condition_variable changed_;
  wait_map added_;
  file_map files_;       // of all that wait
  bool forgot_ = false;  // one of them
  std::uint64_t last_number_ = 0;
  bool stopped_ = false;
  bool ended_ = false;

  // The thread's alone.
  wait_map waits_;
  std::map<int, std::size_t> users_;  // of what inotify watches
};

file_watcher::file_watcher(std::function<void(disk_queue::answer)> deliver,
                           std::chrono::milliseconds watched)
    : watch_(std::make_shared<watch>(std::move(deliver), watched)) {}

file_watcher::~file_watcher() {
  stop(std::chrono::steady_clock::now() + disk_thread::longest_farewell);
}

std::uint64_t file_watcher::look(std::shared_ptr<file_source> file, std::uint64_t known,
                                 std::chrono::nanoseconds wait, seen then) {
  watch::wait wanted;
  wanted.known = known;
  wanted.until = after(watch::clock::now(), wait);
  wanted.seen_last = std::make_shared<result<file_facts>>(file_facts());
  wanted.answer = [then = std::move(then), told = wanted.seen_last] {
    if (!*told) return then(told->why().code, {});
    then({}, **told);
  };
  const std::lock_guard guard(starting_);
  if (stopped_) return 0;
  if (!thread_.joinable()) {
    if (!watch_->open()) return 0;
    try {
      thread_ = std::thread([kept = watch_] {
        // Handlers of the program's run on threads of the program's.
        sigset_t all;
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
        kept->run();
      });
    } catch (const std::system_error&) {
      return 0;
    }
  }
  return watch_->add(std::move(file), std::move(wanted));
}

void file_watcher::forget(std::uint64_t number) noexcept { watch_->forget(number); }

void file_watcher::stop(std::chrono::steady_clock::time_point until) noexcept {
  const std::lock_guard guard(starting_);
  stopped_ = true;
  if (!thread_.joinable()) return;
  if (watch_->stop(until)) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace ucx::detail
