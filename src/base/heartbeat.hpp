// When to ask a peer for a sign of life, and when to give it up: UCX notices closed sockets only.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/clock.hpp"

namespace ucx::detail {

/// Counts a peer's silence while something waits for it. Only time in which this side was looking
/// counts: a process that computed for a minute must first hear what arrived meanwhile. A silence
/// counts from a whole `step()` before it was first seen. So a peer is given up at the latest
/// `timeout` after its last word, and at the earliest a step before that.
class heartbeat {
 public:
  heartbeat(std::chrono::nanoseconds interval, std::chrono::nanoseconds timeout) noexcept
      : interval_(interval), timeout_(timeout) {}

  /// The peer said something.
  void heard() noexcept { heard_ = true; }

  enum class verdict { quiet, ask, dead };
  /// Says what to do at `now`, while something waits for the peer.
  verdict look(clock::time_point now) noexcept {
    const auto looked = std::min<clock::duration>({now - last_look_, interval_, timeout_ / 2});
    last_look_ = now;
    if (heard_ || !watching_) {
      // The peer's last word may be as old as the last look.
      last_asked_ = watching_ ? now - looked : now;
      heard_ = false;
      watching_ = true;
      silence_ = step();
      return verdict::quiet;
    }
    silence_ += looked;
    if (silence_ >= timeout_) return verdict::dead;
    if (now - last_asked_ < interval_) return verdict::quiet;
    last_asked_ = now;
    return verdict::ask;
  }
  /// Nothing waits for the peer any more.
  void rest() noexcept { watching_ = false; }

  /// Returns when to look again; and how long after something began to wait to look first.
  clock::time_point next_look() const noexcept {
    const auto left = std::max<clock::duration>(timeout_ - silence_, std::chrono::milliseconds(1));
    return last_look_ + std::min<clock::duration>(step(), left);
  }
  clock::duration step() const noexcept { return step(interval_, timeout_); }
  static clock::duration step(std::chrono::nanoseconds interval,
                              std::chrono::nanoseconds timeout) noexcept {
    return std::min(interval, timeout) / 8;
  }
  std::chrono::nanoseconds timeout() const noexcept { return timeout_; }

 private:
  std::chrono::nanoseconds interval_;
  std::chrono::nanoseconds timeout_;
  bool watching_ = false;
  bool heard_ = false;
  clock::duration silence_ = clock::duration::zero();
  clock::time_point last_look_;
  clock::time_point last_asked_;
};

}  // namespace ucx::detail
