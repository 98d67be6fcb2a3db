#include "ucx/listener.hpp"

#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "base/forked_child.hpp"
#include "connection/listener_core.hpp"
#include "connection/pending_connection.hpp"
#include "worker/core_access.hpp"
#include "worker/handler_queue.hpp"
#include "worker/worker_core.hpp"

namespace ucx {

connection_request::connection_request(std::unique_ptr<detail::pending_connection> pending) noexcept
    : pending_(std::move(pending)) {}

connection_request::connection_request(connection_request&& other) noexcept = default;
connection_request& connection_request::operator=(connection_request&& other) noexcept {
  const connection_request before(std::move(pending_));
  pending_ = std::move(other.pending_);
  return *this;
}
connection_request::~connection_request() { detail::leave_to_parent(pending_); }

const socket_address& connection_request::peer() const noexcept {
  static const socket_address none;
  return pending_ ? pending_->peer() : none;
}

const socket_address& connection_request::local() const noexcept {
  static const socket_address none;
  return pending_ ? pending_->local() : none;
}

void connection_request::reject() noexcept {
  if (!detail::leave_to_parent(pending_)) pending_.reset();
}

void connection_request::reject(errc why, std::string_view error_message) {
  if (detail::leave_to_parent(pending_)) return;
  if (const auto taken = std::move(pending_)) taken->refuse(why, error_message);
}

std::function<void(std::exception_ptr)> detail::reporter_of(const connection_request& request) {
  const std::unique_ptr<pending_connection>& pending = core_access::pending(request);
  if (!pending) return [](const std::exception_ptr&) { std::terminate(); };
  return [report = pending->worker().reporter()](std::exception_ptr thrown) {
    handler_queue::report_to(*report, std::move(thrown));
  };
}

}  // namespace ucx
