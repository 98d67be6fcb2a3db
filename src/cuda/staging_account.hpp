// How much of a worker's staging memory is pinned, and what was copied through it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ucx/worker_options.hpp"

namespace ucx::detail {

/// Lives as long as the worker or any of the worker's buffers. Threads: sharing one object is safe.
class staging_account {
 public:
  explicit staging_account(std::size_t most_pinned) noexcept : most_pinned_(most_pinned) {}
  staging_account(const staging_account&) = delete;
  staging_account& operator=(const staging_account&) = delete;

  std::size_t most_pinned() const noexcept { return most_pinned_; }

  /// Returns whether so much more may be pinned; it counts until it is given back.
  bool take(std::size_t bytes) noexcept {
    std::uint64_t now = pinned_.load(std::memory_order_relaxed);
    do {
      if (bytes > most_pinned_ - now) return false;
    } while (!pinned_.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
    return true;
  }
  void give_back(std::size_t bytes) noexcept {
    pinned_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  // A buffer comes, or goes.
  void add(std::size_t bytes) noexcept { memory_.fetch_add(bytes, std::memory_order_relaxed); }
  void remove(std::size_t bytes) noexcept { memory_.fetch_sub(bytes, std::memory_order_relaxed); }

  /// Counts a copy that is asked for.
  void count(std::size_t bytes, bool is_pinned) noexcept {
    copies_.fetch_add(1, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (!is_pinned) unpinned_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  /// Counts what was moved directly, or was to be.
  void count_direct(std::uint64_t bytes) noexcept {
    direct_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void count_not_direct() noexcept { not_direct_.fetch_add(1, std::memory_order_relaxed); }
  staging_statistics statistics() const noexcept {
    staging_statistics told;
    told.copies = copies_.load(std::memory_order_relaxed);
    told.bytes = bytes_.load(std::memory_order_relaxed);
    told.unpinned_bytes = unpinned_bytes_.load(std::memory_order_relaxed);
    told.memory = memory_.load(std::memory_order_relaxed);
    told.pinned_memory = pinned_.load(std::memory_order_relaxed);
    told.direct_bytes = direct_bytes_.load(std::memory_order_relaxed);
    told.direct_fallbacks = not_direct_.load(std::memory_order_relaxed);
    return told;
  }

 private:
  const std::size_t most_pinned_;
  std::atomic<std::uint64_t> memory_{0};
  std::atomic<std::uint64_t> pinned_{0};
  std::atomic<std::uint64_t> copies_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> unpinned_bytes_{0};
  std::atomic<std::uint64_t> direct_bytes_{0};
  std::atomic<std::uint64_t> not_direct_{0};
};

}  // namespace ucx::detail
