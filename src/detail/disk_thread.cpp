#include "detail/disk_thread.hpp"

#include <limits>
#include <new>

namespace ucx::detail {
bool disk_queue::start(work job) { return add(std::move(job), most_); }

bool disk_queue::start_always(work job) {
  return add(std::move(job), std::numeric_limits<std::size_t>::max());
}

bool disk_queue::add(work job, std::size_t most) {
  const std::lock_guard guard(mutex_);
  if (finishing_ || waiting_.size() >= most) return false;
  waiting_.push_back(std::move(job));
  if (waiting_.size() == 1) changed_.notify_all();
  return true;
}

void disk_queue::run() {
  std::unique_lock guard(mutex_);
  for (;;) {
    changed_.wait(guard, [this] { return finishing_ || !waiting_.empty(); });
    if (stopped_ || waiting_.empty()) break;
    work job = std::move(waiting_.front());
    waiting_.pop_front();
    guard.unlock();
    answer done;
    try {
      done = job();
    } catch (const std::bad_alloc&) {  // then whoever asked gets no answer
    }
    job = nullptr;
    guard.lock();
    // Under the lock, so that it does not begin when stop() has returned.
    if (done && !stopped_) deliver_(std::move(done));
    if (!done) continue;
    guard.unlock();
    done = nullptr;
    guard.lock();
  }
  ended_ = true;
  changed_.notify_all();
}

void disk_queue::begin_stop() noexcept {
  const std::lock_guard guard(mutex_);
  finishing_ = true;
  changed_.notify_all();
}

/// Returns whether the thread has ended.
bool disk_queue::stop(std::chrono::steady_clock::time_point until) noexcept {
  std::deque<work> forgotten;  // destroyed without the lock
  begin_stop();
  std::unique_lock guard(mutex_);
  changed_.wait_until(guard, until, [this] { return ended_; });
  stopped_ = true;
  forgotten.swap(waiting_);
  return ended_;
}

disk_thread::disk_thread(std::size_t most, std::function<void(disk_queue::answer)> deliver)
    : queue_(std::make_shared<disk_queue>(most, std::move(deliver))) {
  thread_ = std::thread([kept = queue_] { kept->run(); });
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
