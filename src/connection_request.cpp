#include "ucx/connection_request.hpp"

#include <utility>

#include "detail/pending_connection.hpp"

namespace ucx {

connection_request::connection_request(std::unique_ptr<detail::pending_connection> pending) noexcept
    : pending_(std::move(pending)) {}

connection_request::connection_request(connection_request&& other) noexcept = default;
connection_request& connection_request::operator=(connection_request&& other) noexcept = default;
connection_request::~connection_request() = default;

const socket_address& connection_request::peer() const noexcept {
  static const socket_address none;
  return pending_ ? pending_->peer() : none;
}

const socket_address& connection_request::local() const noexcept {
  static const socket_address none;
  return pending_ ? pending_->local() : none;
}

void connection_request::reject() noexcept { pending_.reset(); }

void connection_request::reject(errc why, std::string_view words) {
  if (const auto taken = std::move(pending_)) taken->refuse(why, words);
}

}  // namespace ucx
