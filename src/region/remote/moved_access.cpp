#include "region/remote/moved_access.hpp"

#include <new>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "region/remote/remote_region_core.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void moved_access::move(std::span<std::byte> bytes, bool into_owner) {
  is_given_up_ = is_overdue_ = false;
  std::error_code ec = errc::revoked;
  if (region_->path().is_lent()) ec = direct_->start(*this, offset_, bytes, into_owner);
  if (ec) moved(ec);
}

bool moved_access::stop_moving() noexcept {
  if (!direct_) return true;
  if (direct_->let_go()) {
    forget_mover();
    return true;
  }
  const clock::time_point now = worker().api().now();
  const bool again = std::exchange(is_given_up_, true);
  if (again && now < deadline()) return false;
  if (again && !std::exchange(is_overdue_, true)) {
    endpoint()->log(log_level::error, "memory of an access that was given up is in use still: ",
                    if_there_is_memory([this] { return describe(); }));
  }
  move_deadline(after(now, worker().options().heartbeat_timeout));
  return false;
}

void moved_access::forget_mover() noexcept {
  direct_.reset();
  if (!keeps_) return;
  // It goes behind the lock, and the worker may go with it.
  worker().queue_expected_handler([gone = std::move(keeps_)] {});
}

void moved_access::left() noexcept {
  if (!direct_ || keeps_) return;
  try {
    worker().expect_handler();
    keeps_ = endpoint()->weak_from_this().lock();
    if (!keeps_) worker().forgo_handler();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace ucx::detail
