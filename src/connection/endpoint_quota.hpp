// Bounds what a peer does not take of what this side has sent it.
#pragma once

namespace ucx::detail {

class endpoint_core;

/// Counts short answers that wait for the peer, and copies of pieces that were given up. A peer
/// that takes what it asked for stays far below the bounds. One that does not is to blame, and
/// loses the connection. A part of the connection; everything happens under the worker's lock.
class endpoint_quota {
 public:
  explicit endpoint_quota(endpoint_core& connection) noexcept : connection_(connection) {}
  endpoint_quota(const endpoint_quota&) = delete;
  endpoint_quota& operator=(const endpoint_quota&) = delete;

  /// Counts a reply that is about to be sent, until `reply_sent()`; returns whether it may.
  bool may_reply() noexcept;
  void reply_sent() noexcept { --replies_; }

  /// A sender has left a copy to UCX: it is counted until `copy_taken()`.
  void copy_left() noexcept;
  void copy_taken() noexcept { --copies_left_; }
  /// Returns whether a further copy is no reason to end the connection.
  bool may_leave_copy() const noexcept;

 private:
  endpoint_core& connection_;
  unsigned replies_ = 0;
  unsigned copies_left_ = 0;
};

}  // namespace ucx::detail
