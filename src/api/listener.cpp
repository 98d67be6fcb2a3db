#include "ucx/listener.hpp"

#include <optional>
#include <utility>

#include "base/forked_child.hpp"
#include "base/handle_place.hpp"
#include "connection/listener_core.hpp"
#include "connection/old_handlers.hpp"
#include "connection/pending_connection.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

namespace ucx {

using detail::core_access;
using detail::listener_core;

namespace {

listener_options with_old_handlers(listener_options options) {
  options.events = detail::events_of(options);
  return options;
}

}  // namespace

listener::listener(const worker& parent, const socket_address& address, listener_options options,
                   std::error_code& ec)
    : core_(listener_core::make(core_access::core(parent), address,
                                with_old_handlers(std::move(options)))
                .or_end(ec)) {
  detail::note_place(core_, this);
}

listener::listener(listener&& other) noexcept : core_(std::move(other.core_)) {
  detail::note_place(core_, this);
}

listener& listener::operator=(listener&& other) noexcept {
  listener taken(std::move(other));
  std::swap(core_, taken.core_);
  detail::note_place(core_, this);
  detail::note_place(taken.core_, &taken);
  return *this;
}

listener::~listener() { close(); }

const socket_address& listener::address() const noexcept {
  static const socket_address none;
  return core_ ? core_->address() : none;
}

listener::acceptance listener::accept() {
  return {core_, core_ && !core_->is_inherited() ? core_->add_wait() : nullptr};
}

std::size_t listener::connections() const noexcept { return core_ ? core_->connections() : 0; }

void listener::close(std::optional<close_mode> connections) noexcept {
  if (!core_ || detail::leave_to_parent(core_)) return;
  const std::shared_ptr<listener_core> kept = core_;  // a handler may destroy the listener
  kept->close_and_stop();
  if (connections) kept->close_connections(*connections);
  detail::let_go_at(this, core_, kept);
}

listener::acceptance::acceptance(std::shared_ptr<detail::listener_core> core,
                                 std::shared_ptr<detail::accept_wait> wait) noexcept
    : core_(std::move(core)), wait_(std::move(wait)) {}

listener::acceptance::acceptance(acceptance&& other) noexcept = default;

listener::acceptance::~acceptance() {
  if (detail::leave_to_parent(core_, wait_)) return;
  if (wait_) core_->remove_wait(*wait_);
}

connection_request listener::acceptance::wait(const io_options& options, std::error_code& ec) {
  std::error_code outcome = core_ && core_->is_inherited() ? errc::forked_child : errc::closed;
  connection_request taken = core_access::make_connection_request(nullptr);
  const std::shared_ptr<listener_core> kept = core_;  // a handler may destroy the wait
  if (const std::shared_ptr<detail::accept_wait> waited = wait_;
      waited && outcome == errc::closed) {
    taken = kept->await(*waited, options.timeout).or_tell(outcome, std::move(taken));
  }
  detail::end_with(outcome, ec, [&kept] {
    return "waiting for a peer" + (kept ? " on " + to_string(kept->address()) : "");
  });
  return taken;
}

bool listener::acceptance::await_ready() const noexcept {
  return !wait_ || core_->is_inherited() || core_->is_over(*wait_);
}

void listener::acceptance::await_suspend(std::coroutine_handle<> coroutine) {
  core_->resume_at_end(wait_, coroutine);
}

connection_request listener::acceptance::await_resume() { return wait(); }

}  // namespace ucx
