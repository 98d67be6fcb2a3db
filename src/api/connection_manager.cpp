#include "ucx/connection_manager.hpp"

#include <utility>

#include "base/forked_child.hpp"
#include "connection/connection_manager_core.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"

namespace ucx {

using detail::connection_manager_core;
using detail::core_access;

namespace {

/// A handler of the manager may destroy the manager before this returns.
detail::result<std::shared_ptr<detail::endpoint_core>> active(
    const std::shared_ptr<connection_manager_core>& core, std::string_view name,
    const io_options& options) {
  if (core) return core->wait_active(name, options);
  return connection_manager_core::not_active(name, errc::closed);
}

}  // namespace

connection_manager::connection_manager(const worker& parent, connection_manager_options options,
                                       std::error_code& ec)
    : core_(
          connection_manager_core::make(core_access::core(parent), std::move(options)).or_end(ec)) {
}

connection_manager::connection_manager(connection_manager&& other) noexcept = default;

connection_manager& connection_manager::operator=(connection_manager&& other) noexcept {
  connection_manager taken(std::move(other));
  std::swap(core_, taken.core_);
  return *this;
}

connection_manager::~connection_manager() { close(close_mode::abort); }

void connection_manager::add(std::string_view name, peer_address where, std::error_code& ec) {
  std::error_code outcome = core_ && core_->is_inherited() ? errc::forked_child : errc::closed;
  if (core_ && outcome == errc::closed) outcome = core_->add(name, std::move(where));
  detail::end_with(outcome, ec, [name, outcome] {
    std::string what = "adding the peer \"";
    what.append(name).append("\"");
    if (outcome == errc::invalid_argument) {
      what += " (connection_manager_options::error_handling: none is for peers by worker address)";
    }
    return what;
  });
}

endpoint connection_manager::wait_active(std::string_view name, const io_options& options,
                                         std::error_code& ec) {
  return core_access::make_endpoint(active(core_, name, options).or_end(ec));
}

endpoint connection_manager::find(std::string_view name) const {
  return core_access::make_endpoint(core_ && !core_->is_inherited() ? core_->find(name) : nullptr);
}

std::optional<managed_peer> connection_manager::status(std::string_view name) const {
  return core_ && !core_->is_inherited() ? core_->status(name) : std::nullopt;
}

std::vector<managed_peer> connection_manager::peers() const {
  return core_ && !core_->is_inherited() ? core_->peers() : std::vector<managed_peer>();
}

void connection_manager::reconnect(std::string_view name, std::error_code& ec) {
  std::error_code outcome = core_ && core_->is_inherited() ? errc::forked_child : errc::closed;
  if (core_ && outcome == errc::closed) outcome = core_->reconnect(name);
  detail::end_with(outcome, ec, [name] {
    return std::string("connecting the peer \"").append(name) + "\" again";
  });
}

void connection_manager::close(std::string_view name, close_mode mode) noexcept {
  if (core_ && !core_->is_inherited()) core_->close(name, mode);
}

void connection_manager::close(close_mode mode) noexcept {
  if (core_ && !detail::leave_to_parent(core_)) core_->close(std::nullopt, mode);
}

}  // namespace ucx
