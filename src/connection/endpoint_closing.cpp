#include "connection/endpoint_closing.hpp"

#include <memory>
#include <mutex>
#include <new>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/close_operation.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

close_operation* endpoint_closing::start(close_mode mode) {
  if (connection_.state() == endpoint_state::closed || has_begun_) return nullptr;
  worker_core& worker = connection_.worker();
  close_operation* const begun = worker.pool_of<close_operation>().take();
  has_begun_ = true;
  operation_ = begun;
  begun->begin(worker, connection_.shared_from_this(), mode,
               after(worker.api().now(), worker.options().close_timeout));
  return begun;
}

std::error_code endpoint_closing::close(close_mode mode) {
  if (connection_.is_inherited()) return errc::forked_child;
  worker_core& worker = connection_.worker();
  if (mode == close_mode::abort || worker.in_handler()) return close_at_once(mode);
  std::unique_lock guard(worker.lock());
  close_operation* closing = nullptr;
  try {
    closing = start(mode);
  } catch (const std::bad_alloc&) {  // not in order, then
    guard.unlock();
    close_at_once(close_mode::abort);
    return errc::no_memory;
  }
  guard.unlock();
  if (closing == nullptr) return {};
  worker.wait(*closing, clock::time_point::max());
  const std::error_code outcome = closing->error();
  closing->drop();
  connection_.observers().disarm();  // a handler may be running still
  guard.lock();
  connection_.see_to_sockets();
  return outcome;
}

/// Without waiting for the peer or for another thread: also inside handlers.
std::error_code endpoint_closing::close_at_once(close_mode mode) {
  worker_core& worker = connection_.worker();
  {
    const std::lock_guard guard(worker.lock());
    const bool flushes = mode == close_mode::flush;
    if (connection_.state() == endpoint_state::closed || (has_begun_ && flushes)) return {};
    if (flushes) return errc::would_deadlock;
    has_begun_ = true;
  }
  // Closing on this side is no loss, and objects that the handlers refer to may go now.
  connection_.observers().disarm();
  const std::shared_ptr<endpoint_core> kept = connection_.weak_from_this().lock();
  const std::lock_guard guard(worker.lock());
  if (connection_.state() != endpoint_state::failed) {
    connection_.fail(make_error_code(errc::canceled),
                     if_there_is_memory("the connection was closed on this side"));
  }
  connection_.drop();
  if (operation_ != nullptr) {
    operation_->finish();
  } else {
    ended();
  }
  return {};
}

void endpoint_closing::look() noexcept {
  if (operation_ != nullptr) connection_.owe(endpoint_core::to_close);
  if (connection_.ucx().is_left_idle()) connection_.owe(endpoint_core::to_drop);
}

void endpoint_closing::step() {
  if (operation_ != nullptr) operation_->step();
}

std::error_code endpoint_closing::leave() {
  connection_.observers().drop_handlers();  // closing on this side is no loss
  connection_.observers().clear();
  if (connection_.state() == endpoint_state::failed) return connection_.why_ended();
  connection_.fail(make_error_code(errc::canceled),
                   if_there_is_memory("the connection was closed on this side"));
  return {};
}

void endpoint_closing::ended() noexcept {
  operation_ = nullptr;
  connection_.closed();
}

}  // namespace ucx::detail
