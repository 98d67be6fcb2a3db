#include "base/disk_thread.hpp"

#include <algorithm>
#include <cassert>
#include <csignal>
#include <limits>
#include <new>

namespace ucx::detail {
namespace {

/// Jobs of `start_some_time()` wait `max_delay` at most, and no longer once `most_unhurried`
/// jobs wait.
constexpr std::chrono::milliseconds longest_delay{20};
constexpr std::size_t most_unhurried = 64;

}  // namespace

bool disk_queue::start(work job) { return add(std::move(job), most_, true); }

bool disk_queue::start_always(work job) {
  return add(std::move(job), std::numeric_limits<std::size_t>::max(), true);
}

bool disk_queue::start_some_time(work job) {
  return add(std::move(job), std::numeric_limits<std::size_t>::max(), false);
}

bool disk_queue::start_next(work job) noexcept {
  const std::lock_guard guard(mutex_);
  if (stage_ >= stage::left_behind) return false;
  try {
    waiting_.push_front(std::move(job));
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

bool disk_queue::is_left_behind() noexcept {
  const std::lock_guard guard(mutex_);
  return stage_ >= stage::left_behind;
}

bool disk_queue::add(work job, std::size_t most, bool wakes) {
  const std::lock_guard guard(mutex_);
  if (stage_ == stage::ended || (stage_ != stage::open && wakes) || waiting_.size() >= most)
    return false;
  waiting_.push_back(std::move(job));
  const bool hurries = wakes || waiting_.size() >= most_unhurried;
  const bool first = waiting_.size() == 1;  // from here on the delay is counted
  if (!awake_ && (hurries || first)) changed_.notify_all();
  awake_ = awake_ || hurries;
  return true;
}

void disk_queue::run() {
  std::unique_lock guard(mutex_);
  for (;;) {
    if (waiting_.empty()) awake_ = false;
    changed_.wait(guard, [this] { return stage_ != stage::open || !waiting_.empty(); });
    if (!awake_) {
      changed_.wait_for(guard, longest_delay, [this] { return stage_ != stage::open || awake_; });
    }
    awake_ = true;
    if (stage_ == stage::left_behind || waiting_.empty()) break;
    work job = std::move(waiting_.front());
    waiting_.pop_front();
    guard.unlock();
    answer done;
    try {
      done = job();
    } catch (const std::bad_alloc&) {  // the caller then gets no answer
    }
    job = nullptr;
    guard.lock();
    if (done) deliver(guard, std::move(done));
  }
  // Destroys the remaining jobs here, where no caller waits: that may close files.
  while (!waiting_.empty()) {
    std::deque<work> left;
    left.swap(waiting_);
    guard.unlock();
    left.clear();
    guard.lock();
  }
  reach(stage::ended);
}

/// Under the lock, so that it does not begin when stop() has returned.
void disk_queue::deliver(std::unique_lock<std::mutex>& guard, answer done) {
  bool is_delivered = false;
  while (!is_delivered && stage_ != stage::left_behind) {
    try {
      deliver_(done);
      is_delivered = true;
    } catch (const std::bad_alloc&) {  // the caller still waits for it
      changed_.wait_for(guard, longest_delay, [this] { return stage_ == stage::left_behind; });
    }
  }
  guard.unlock();
  done = nullptr;
  guard.lock();
}

void disk_queue::reach(stage next) noexcept {
  assert(next <= stage_ || may_become(stage_, next));
  stage_ = std::max(stage_, next);
  changed_.notify_all();
}

void disk_queue::begin_stop() noexcept {
  const std::lock_guard guard(mutex_);
  reach(stage::finishing);
}

/// Returns whether the thread has ended.
bool disk_queue::stop(std::chrono::steady_clock::time_point until) noexcept {
  begin_stop();
  std::unique_lock guard(mutex_);
  changed_.wait_until(guard, until, [this] { return stage_ == stage::ended; });
  reach(stage::left_behind);
  return stage_ == stage::ended;
}

disk_thread::disk_thread(std::size_t most, disk_queue::delivery deliver)
    : queue_(std::make_shared<disk_queue>(most, std::move(deliver))) {
  thread_ = std::thread([kept = queue_] {
    // With SIGXFSZ blocked, a write beyond RLIMIT_FSIZE is an error, and does not end the process.
    // Handlers of the program run on the program's threads only.
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
    kept->run();
  });
}

disk_thread::~disk_thread() { stop(std::chrono::steady_clock::now() + longest_farewell); }

void disk_thread::stop(std::chrono::steady_clock::time_point until) noexcept {
  if (!thread_.joinable()) return;
  if (queue_->stop(until)) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

}  // namespace ucx::detail
