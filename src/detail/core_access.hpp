// How the library's own parts, and its tests, look inside the public handles.
#pragma once

#include <memory>
#include <system_error>

#include "ucx/connection_request.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

class ucp_api;

struct core_access {
  /// Makes a context whose every UCX call goes to `api`, which has to outlive all that is made of
  /// it.
  static context make_context(ucp_api& api, const context_options& options, std::error_code& ec);

  template <class Handle>
  static auto& core(Handle& handle) noexcept {
    return handle.core_;
  }
  static request make_request(operation* owned) noexcept { return request(owned); }
  static connection_request make_connection_request(
      std::unique_ptr<pending_connection> pending) noexcept;
  static std::unique_ptr<pending_connection>& pending(connection_request& handle) noexcept {
    return handle.pending_;
  }
  static operation* get(const request& handle) noexcept { return handle.operation_; }
};

}  // namespace ucx::detail
