// UCX's cache of registrations, which RDMA hardware has of memory.
#pragma once

#include <cstddef>
#include <span>

#include "ucp/ucp_api.hpp"

namespace ucx::detail {

/// Ends the registration of `bytes`, and the keys to them, which UCX's cache keeps behind
/// `mem_unmap`. Pages that UCX still uses stay so long: with other memory that is registered, or in
/// a send under way. REQUIRES: `bytes` were unmapped from `context`.
void end_registration(ucp_api& api, ucp_context_h context,
                      std::span<const std::byte> bytes) noexcept;

}  // namespace ucx::detail
