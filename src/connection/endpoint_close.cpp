// How a connection ends: docs/architecture.md, "Closing". Apart from endpoint_core.cpp because
// something here waits, and nothing there does.
#include <memory>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "base/forked_child.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/close_operation.hpp"
#include "connection/connection_table.hpp"
#include "connection/endpoint_core.hpp"
#include "ucp/status.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Bounds what is left to do for a dropped endpoint among what others keep UCX busy with.
constexpr int rounds_to_close = 100;

}  // namespace

close_operation* endpoint_core::start_close(close_mode mode) {
  if (state_ == endpoint_state::closed || taking_leave_) return nullptr;
  close_operation* const closer = worker_.pool_of<close_operation>().take();
  taking_leave_ = true;
  closer_ = closer;
  closer_->begin(worker_, shared_from_this(), mode,
                 after(worker_.api().now(), worker_.options().close_timeout));
  return closer_;
}

void endpoint_core::close(close_mode mode, std::error_code& ec) {
  ec.clear();
  if (is_forked_child()) ec = errc::forked_child;
  if (ec) return;
  if (mode == close_mode::abort || worker_.in_handler()) return close_at_once(mode, ec);
  std::unique_lock guard(worker_.lock());
  close_operation* closing = nullptr;
  try {
    closing = start_close(mode);
  } catch (const std::bad_alloc&) {  // not in order, then
    guard.unlock();
    close_at_once(close_mode::abort, ec);
    ec = errc::no_memory;
    return;
  }
  guard.unlock();
  if (closing == nullptr) return;
  worker_.wait(*closing, clock::time_point::max());
  ec = closing->error();
  closing->drop();
  observers_.disarm();  // a handler may be running still
  guard.lock();
  see_to_sockets();
}

/// Without waiting for the peer or for another thread: also inside handlers.
void endpoint_core::close_at_once(close_mode mode, std::error_code& ec) {
  {
    const std::lock_guard guard(worker_.lock());
    if (state_ == endpoint_state::closed || (taking_leave_ && mode == close_mode::flush)) return;
    if (mode == close_mode::flush) {
      ec = errc::would_deadlock;
      return;
    }
    taking_leave_ = true;
  }
  observers_.disarm();  // closing on this side is no loss, and whoever made it may go now
  const std::shared_ptr<endpoint_core> kept = weak_from_this().lock();
  const std::lock_guard guard(worker_.lock());
  if (state_ != endpoint_state::failed) {
    fail(make_error_code(errc::canceled),
         if_there_is_memory("the connection was closed on this side"));
  }
  drop();
  if (closer_ != nullptr) return closer_->finish();
  closed();
}

void endpoint_core::look_at_closing() noexcept {
  if (closer_ != nullptr) owe(to_close);
}

std::error_code endpoint_core::leave() {
  observers_.drop_handlers();  // closing on this side is no loss
  observers_.clear();
  if (state_ == endpoint_state::failed) return error_;
  fail(make_error_code(errc::canceled),
       if_there_is_memory("the connection was closed on this side"));
  return {};
}

void endpoint_core::closed() noexcept {
  drop_keys();
  closer_ = nullptr;
  state_ = endpoint_state::closed;
  worker_.connections().remove(*this);
}

void endpoint_core::start_drop() noexcept {
  if (handle() == nullptr) return;
  worker_.connections().remove(*this);
  if (ucx_.transfers() == 0) drop_keys();
  ucx_.start_drop();
}

void endpoint_core::drop() noexcept {
  start_drop();
  ucp_api& api = worker_.api();
  const clock::time_point until = api.now() + close_operation::drop_limit;
  // UCX alone, not our handlers: this may run inside one of them.
  while (!ucx_.has_let_go()) {
    if (api.now() >= until) break;
    if (worker_.progress_ucx() == 0) api.relax();
  }
  see_to_sockets();
  drop_keys();
}

/// UCX closes the sockets in later rounds, which a worker that the caller drives may never see.
void endpoint_core::see_to_sockets() noexcept {
  for (int i = 0; i < rounds_to_close && worker_.progress_ucx() != 0; ++i) {
  }
}

void endpoint_core::drop_keys() noexcept {
  for (key_holder* each : keys_) each->drop_key();
}

}  // namespace ucx::detail
