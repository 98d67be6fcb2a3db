// Work of the library's own that other threads hand to a worker.
#pragma once

#include <memory>
#include <utility>

namespace ucx::detail {

class worker_core;

/// Brings its place in the queue along: handing it over takes no memory, and can not fail.
class handed_work {
 public:
  handed_work() noexcept = default;
  handed_work(const handed_work&) = delete;
  handed_work& operator=(const handed_work&) = delete;
  virtual ~handed_work() = default;

  /// In a round of the worker that it was handed to, under its lock; users' code must not be
  /// called. Not at all where the worker ends before.
  virtual void run(worker_core& by) = 0;

 private:
  friend class handed_queue;
  std::shared_ptr<handed_work> next_;  // while it is in a queue
};

/// First come, first served; keeps what is in it. Threads: one at a time.
class handed_queue {
 public:
  handed_queue() noexcept = default;
  handed_queue(handed_queue&& other) noexcept
      : first_(std::move(other.first_)), last_(std::exchange(other.last_, nullptr)) {}
  handed_queue& operator=(handed_queue&&) = delete;
  ~handed_queue() {
    while (pop()) {  // one after the other: a chain that ended as one would end in recursion
    }
  }

  bool empty() const noexcept { return last_ == nullptr; }
  /// REQUIRES: it is in no queue.
  void push(std::shared_ptr<handed_work> work) noexcept {
    handed_work* const added = work.get();
    (last_ == nullptr ? first_ : last_->next_) = std::move(work);
    last_ = added;
  }
  /// Takes over what is in `others`, behind its own.
  void append(handed_queue&& others) noexcept {
    if (others.empty()) return;
    (last_ == nullptr ? first_ : last_->next_) = std::move(others.first_);
    last_ = std::exchange(others.last_, nullptr);
  }
  /// Returns nothing where it is empty.
  std::shared_ptr<handed_work> pop() noexcept {
    std::shared_ptr<handed_work> work = std::move(first_);
    if (!work) return nullptr;
    first_ = std::move(work->next_);
    if (!first_) last_ = nullptr;
    return work;
  }

 private:
  std::shared_ptr<handed_work> first_;
  handed_work* last_ = nullptr;
};

}  // namespace ucx::detail
