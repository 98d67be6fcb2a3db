#include "ucx/listener.hpp"

#include <utility>

#include "detail/core_access.hpp"
#include "detail/listener_core.hpp"
#include "ucx/error.hpp"

namespace ucx {

using detail::core_access;
using detail::listener_core;

listener::listener(const worker& parent, const socket_address& address)
    : listener(parent, address, accept_handler()) {}

listener::listener(const worker& parent, const socket_address& address, std::error_code& ec)
    : listener(parent, address, accept_handler(), ec) {}

listener::listener(const worker& parent, const socket_address& address, accept_handler on_request) {
  std::string what;
  std::error_code ec;
  core_ = listener_core::make(core_access::core(parent), address, std::move(on_request), what, ec);
  if (ec) throw error(ec, what);
}

listener::listener(const worker& parent, const socket_address& address, accept_handler on_request,
                   std::error_code& ec) {
  std::string what;
  core_ = listener_core::make(core_access::core(parent), address, std::move(on_request), what, ec);
}

listener::listener(listener&& other) noexcept = default;

listener& listener::operator=(listener&& other) noexcept {
  if (this != &other) {
    close();
    core_ = std::move(other.core_);
  }
  return *this;
}

listener::~listener() { close(); }

const socket_address& listener::address() const noexcept {
  static const socket_address none;
  return core_ ? core_->address() : none;
}

void listener::close() noexcept {
  if (!core_) return;
  core_->close();
  core_.reset();
}

}  // namespace ucx
