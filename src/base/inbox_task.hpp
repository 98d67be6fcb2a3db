// Work of the library's own that other threads hand to a worker.
#pragma once

#include <memory>
#include <utility>

namespace ucx::detail {

class worker_core;

/// Brings its place in the queue along: handing it over takes no memory, and can not fail.
class inbox_task {
 public:
  inbox_task() noexcept = default;
  inbox_task(const inbox_task&) = delete;
  inbox_task& operator=(const inbox_task&) = delete;
  virtual ~inbox_task() = default;

  /// In a round of the worker that it was handed to, under its lock; users' code must not be
  /// called. Not at all where the worker ends before. Where it throws std::bad_alloc, it is called
  /// again in the next round, and finds what it has done.
  virtual void run(worker_core& by) = 0;

 private:
  friend class inbox_tasks;
  std::shared_ptr<inbox_task> next_;  // while it is in a queue
};

/// First come, first served; keeps what is in it. Threads: one at a time.
class inbox_tasks {
 public:
  inbox_tasks() noexcept = default;
  inbox_tasks(inbox_tasks&& other) noexcept
      : first_(std::move(other.first_)), last_(std::exchange(other.last_, nullptr)) {}
  inbox_tasks& operator=(inbox_tasks&&) = delete;
  ~inbox_tasks() {
    while (pop()) {  // one after the other: a chain that ended as one would end in recursion
    }
  }

  bool empty() const noexcept { return last_ == nullptr; }
  /// REQUIRES: it is in no queue.
  void push(std::shared_ptr<inbox_task> work) noexcept {
    inbox_task* const added = work.get();
    (last_ == nullptr ? first_ : last_->next_) = std::move(work);
    last_ = added;
  }
  /// Takes over what is in `others`, behind its own.
  void append(inbox_tasks&& others) noexcept {
    if (others.empty()) return;
    (last_ == nullptr ? first_ : last_->next_) = std::move(others.first_);
    last_ = std::exchange(others.last_, nullptr);
  }
  /// Returns nothing where it is empty.
  std::shared_ptr<inbox_task> pop() noexcept {
    std::shared_ptr<inbox_task> work = std::move(first_);
    if (!work) return nullptr;
    first_ = std::move(work->next_);
    if (!first_) last_ = nullptr;
    return work;
  }

 private:
  std::shared_ptr<inbox_task> first_;
  inbox_task* last_ = nullptr;
};

}  // namespace ucx::detail
