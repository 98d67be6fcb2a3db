// Tasks that wait for their times, in their owners' memory.
#pragma once

#include <utility>

#include "ucx/driven_task.hpp"

namespace ucx::detail {

/// A pairing heap. In a node `previous` is the parent of a first child, else the sibling
/// before; `next` is the sibling behind, and `later` the first child. Tasks of one time have no
/// order. Threads: one at a time.
class task_timers {
 public:
  task_timers() noexcept = default;
  task_timers(const task_timers&) = delete;
  task_timers& operator=(const task_timers&) = delete;

  /// Returns the task that is due first; null where there is none.
  driven_task* first() const noexcept { return root_; }
  void add(driven_task& task) noexcept {
    task.previous_ = task.next_ = task.later_ = nullptr;
    root_ = merged(root_, &task);
  }
  /// REQUIRES: it is one of these.
  void remove(driven_task& task) noexcept {
    if (&task == root_) {
      root_ = merged_siblings(std::exchange(task.later_, nullptr));
      return;
    }
    (task.previous_->later_ == &task ? task.previous_->later_ : task.previous_->next_) = task.next_;
    if (task.next_ != nullptr) task.next_->previous_ = task.previous_;
    root_ = merged(root_, merged_siblings(std::exchange(task.later_, nullptr)));
  }

 private:
  /// Both have neither parents nor siblings, and one may be null.
  static driven_task* merged(driven_task* one, driven_task* other) noexcept {
    if (one == nullptr || other == nullptr) return one == nullptr ? other : one;
    if (other->when_ < one->when_) std::swap(one, other);
    other->next_ = one->later_;
    if (other->next_ != nullptr) other->next_->previous_ = other;
    other->previous_ = one;
    one->later_ = other;
    return one;
  }
  /// By pairs, then all pairs, so that it takes logarithmic time in the long run.
  static driven_task* merged_siblings(driven_task* first) noexcept {
    driven_task* pairs = nullptr;  // linked by `next`
    while (first != nullptr) {
      driven_task* const one = cut(first);
      driven_task* const pair = merged(one, cut(first));
      pair->next_ = pairs;
      pairs = pair;
    }
    driven_task* all = nullptr;
    while (pairs != nullptr) all = merged(cut(pairs), all);
    return all;
  }
  /// Takes the first one out of a list that `next` links; null where it is empty.
  static driven_task* cut(driven_task*& first) noexcept {
    driven_task* const taken = first;
    if (taken == nullptr) return nullptr;
    first = taken->next_;
    taken->previous_ = taken->next_ = nullptr;
    return taken;
  }

  driven_task* root_ = nullptr;
};

}  // namespace ucx::detail
