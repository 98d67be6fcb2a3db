#include "connection/endpoint_quota.hpp"

#include "connection/endpoint_core.hpp"

namespace ucx::detail {
namespace {

/// One that asks no more than it may is far below.
constexpr unsigned most_replies = 4096;

/// Of pieces: four MiB.
constexpr unsigned most_copies_left = 64;

}  // namespace

bool endpoint_quota::may_reply() noexcept {
  if (replies_ > most_replies) return false;
  if (++replies_ > most_replies) {
    connection_.blame(errc::protocol_error, "the peer does not take its answers");
  }
  return true;
}

bool endpoint_quota::may_leave_copy() const noexcept { return copies_left_ + 1 < most_copies_left; }

void endpoint_quota::copy_left() noexcept {
  if (++copies_left_ == most_copies_left) {
    connection_.blame(errc::connection_reset, "the peer does not take what is sent to it");
  }
}

}  // namespace ucx::detail
