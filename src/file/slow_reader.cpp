#include "file/slow_reader.hpp"

#include <chrono>
#include <utility>

namespace ucx::detail {
namespace {

/// How long the end of a worker waits for a disk.
constexpr std::chrono::seconds longest_last_read{2};

}  // namespace

reading_thread::reading_thread(handler done) : queue_(std::make_shared<queue>()) {
  queue_->done = std::move(done);
  thread_ = std::thread([kept = queue_] { run(*kept); });
}

reading_thread::~reading_thread() {
  std::unique_lock guard(queue_->mutex);
  queue_->stopping = true;
  forgotten_.swap(queue_->waiting);
  queue_->changed.notify_all();
  const bool ended =
      queue_->changed.wait_for(guard, longest_last_read, [this] { return queue_->ended; });
  guard.unlock();
  if (ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void reading_thread::start(std::shared_ptr<slow_read> read) {
  const std::lock_guard guard(queue_->mutex);
  queue_->waiting.push_back(std::move(read));
  queue_->changed.notify_all();
}

std::vector<std::shared_ptr<slow_read>> reading_thread::take_unwanted() {
  std::vector<std::shared_ptr<slow_read>> taken;
  const std::lock_guard guard(queue_->mutex);
  std::erase_if(queue_->waiting, [&](std::shared_ptr<slow_read>& each) {
    if (!each->unwanted.load(std::memory_order_relaxed)) return false;
    taken.push_back(each);
    return true;
  });
  return taken;
}

void reading_thread::run(queue& work) {
  std::unique_lock guard(work.mutex);
  for (;;) {
    work.changed.wait(guard, [&] { return work.stopping || !work.waiting.empty(); });
    if (work.stopping) break;
    std::shared_ptr<slow_read> read = std::move(work.waiting.front());
    work.waiting.pop_front();
    guard.unlock();
    if (!read->unwanted.load(std::memory_order_relaxed)) {
      read->error = read->file->read(read->offset, read->into);
    }
    guard.lock();
    if (work.stopping) break;
    // Under the lock, so that it does not begin when the destructor has gone on.
    work.done(std::move(read));
  }
  work.ended = true;
  work.changed.notify_all();
}

}  // namespace ucx::detail
