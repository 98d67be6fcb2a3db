#include "detail/file_watcher.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <csignal>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "detail/owned_descriptor.hpp"

namespace ucx::detail {

class file_watcher::watch {
 public:
  using clock = std::chrono::steady_clock;

  struct wait {
    std::shared_ptr<file_source> file;
    std::uint64_t known = 0;
    clock::time_point until;
    seen then;
    int watched = -1;  // inotify's number of the file; -1: it says nothing of it
    clock::time_point next_look = {};
  };

  explicit watch(std::function<void(disk_queue::answer)> deliver) : deliver_(std::move(deliver)) {}

  /// Returns false where the system has no descriptors left to wake the thread by.
  bool open() noexcept {
    waking_ = owned_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    notices_ = owned_descriptor(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    return static_cast<bool>(waking_);
  }

  std::uint64_t add(wait&& wanted) {
    const std::lock_guard guard(mutex_);
    if (stopped_) return 0;
    added_.emplace_back(++last_number_, std::move(wanted));
    wake();
    return last_number_;
  }

  void forget(std::uint64_t number) noexcept {
    const std::lock_guard guard(mutex_);
    try {
      forgotten_.push_back(number);
    } catch (const std::bad_alloc&) {
      return;  // then its time ends it
    }
    wake();
  }

  void run() {
    while (take_news()) {
      look_at_all();
      sleep();
      read_notices();
    }
    waits_.clear();
    std::vector<std::pair<std::uint64_t, wait>> left;
    const std::lock_guard guard(mutex_);
    left.swap(added_);
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
  void wake() noexcept {
    const std::uint64_t one = 1;
    // It is awake already where this fails.
    [[maybe_unused]] const ssize_t written = ::write(waking_.get(), &one, sizeof one);
  }

  /// Returns false when there is nothing more to do.
  bool take_news() {
    std::vector<std::pair<std::uint64_t, wait>> added;
    std::vector<std::uint64_t> forgotten;
    {
      const std::lock_guard guard(mutex_);
      if (stopped_) return false;
      added.swap(added_);
      forgotten.swap(forgotten_);
    }
    for (auto& [number, wanted] : added) {
      // Watched before it is looked at: what changes in between is noticed.
      if (wanted.until > clock::now()) wanted.watched = begin_to_watch(*wanted.file);
      waits_.emplace(number, std::move(wanted));
    }
    for (const std::uint64_t number : forgotten) {
      const auto found = waits_.find(number);
      if (found != waits_.end()) end(found);
    }
    return true;
  }

  int begin_to_watch(const file_source& file) {
    if (!notices_ || file.descriptor() < 0) return -1;
    // By the descriptor: whatever has the file's name by now is another one.
    const std::string open_one = "/proc/self/fd/" + std::to_string(file.descriptor());
    const int watched = ::inotify_add_watch(notices_.get(), open_one.c_str(), IN_MODIFY);
    if (watched >= 0) ++users_[watched];
    return watched;
  }

  std::map<std::uint64_t, wait>::iterator end(std::map<std::uint64_t, wait>::iterator over) {
    const int watched = over->second.watched;
    if (watched >= 0 && --users_[watched] == 0) {
      users_.erase(watched);
      ::inotify_rm_watch(notices_.get(), watched);
    }
    return waits_.erase(over);
  }

  void look_at_all() {
    for (auto at = waits_.begin(); at != waits_.end();) {
      at = at->second.next_look <= clock::now() && look_at(at->second) ? end(at) : std::next(at);
    }
  }

  /// Returns whether nobody waits for it any more.
  bool look_at(wait& wanted) {
    std::error_code ec;
    const file_facts facts = wanted.file->facts(ec);
    const clock::time_point now = clock::now();
    if (!ec && facts.size == wanted.known && now < wanted.until) {
      wanted.next_look = now + (wanted.watched >= 0 ? watched_period : unwatched_period);
      return false;
    }
    disk_queue::answer answer = [then = std::move(wanted.then), ec, facts] { then(ec, facts); };
    // Under the lock, so that it does not begin when stop() has returned.
    const std::lock_guard guard(mutex_);
    if (!stopped_) deliver_(std::move(answer));
    return true;
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
    const clock::time_point now = clock::now();
    for (auto& [number, each] : waits_) {
      if (each.until <= now) each.next_look = now;
    }
  }

  /// The file was written to; -1: nobody knows which.
  void note(int watched) noexcept {
    for (auto& [number, each] : waits_) {
      if (watched < 0 || each.watched == watched) each.next_look = {};
    }
  }

  const std::function<void(disk_queue::answer)> deliver_;
  owned_descriptor waking_;
  owned_descriptor notices_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::uint64_t, wait>> added_;
  std::vector<std::uint64_t> forgotten_;
  std::uint64_t last_number_ = 0;
  bool stopped_ = false;
  bool ended_ = false;

  // The thread's alone.
  std::map<std::uint64_t, wait> waits_;
  std::map<int, std::size_t> users_;  // of what inotify watches
};

file_watcher::file_watcher(std::function<void(disk_queue::answer)> deliver)
    : watch_(std::make_shared<watch>(std::move(deliver))) {}

file_watcher::~file_watcher() {
  stop(std::chrono::steady_clock::now() + disk_thread::longest_farewell);
}

std::uint64_t file_watcher::look(std::shared_ptr<file_source> file, std::uint64_t known,
                                 std::chrono::nanoseconds wait, seen then) {
  const std::lock_guard guard(starting_);
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
  watch::wait wanted;
  wanted.file = std::move(file);
  wanted.known = known;
  wanted.until = watch::clock::now() + wait;
  wanted.then = std::move(then);
  return watch_->add(std::move(wanted));
}

void file_watcher::forget(std::uint64_t number) noexcept { watch_->forget(number); }

void file_watcher::stop(std::chrono::steady_clock::time_point until) noexcept {
  const std::lock_guard guard(starting_);
  if (!thread_.joinable()) return;
  if (watch_->stop(until)) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace ucx::detail
