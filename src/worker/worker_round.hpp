// Which workers the calling thread makes rounds of.
#pragma once

namespace ucx::detail {

class worker_core;

/// Marks, while it lives, that this thread makes a round of a worker, or a part of one. They nest.
class worker_round {
 public:
  enum class part { any, ucx };

  explicit worker_round(const worker_core& worker, part made = part::any) noexcept
      : worker_(&worker), part_(made), outer_(innermost_) {
    innermost_ = this;
  }
  ~worker_round() { innermost_ = outer_; }
  worker_round(const worker_round&) = delete;
  worker_round& operator=(const worker_round&) = delete;

  /// This part of the round begins.
  void enter(part made) noexcept { part_ = made; }

  /// Returns whether the calling thread makes a round of `worker`.
  static bool is_made_of(const worker_core& worker) noexcept {
    for (const worker_round* each = innermost_; each != nullptr; each = each->outer_) {
      if (each->worker_ == &worker) return true;
    }
    return false;
  }
  /// Returns whether the calling thread is in the part of such a round that is UCX's.
  static bool is_inside_ucx(const worker_core& worker) noexcept {
    for (const worker_round* each = innermost_; each != nullptr; each = each->outer_) {
      if (each->worker_ == &worker && each->part_ == part::ucx) return true;
    }
    return false;
  }
  /// Returns whose round the calling thread makes, the innermost one; null if none.
  static const worker_core* worker() noexcept {
    return innermost_ == nullptr ? nullptr : innermost_->worker_;
  }

 private:
  /// Where a library's variables of threads usually are, it would take two calls to find: a sixth
  /// of a round that finds nothing.
  [[gnu::tls_model("initial-exec")]] static constinit thread_local const worker_round* innermost_;

  const worker_core* worker_;
  part part_;
  const worker_round* outer_;
};

}  // namespace ucx::detail
