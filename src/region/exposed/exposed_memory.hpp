// Exposing memory wherever it is: which kind of region that makes.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "region/exposed/exposed_region.hpp"
#include "ucx/access.hpp"
#include "ucx/memory_place.hpp"

namespace ucx::detail {

class context_core;

/// Exposes the caller's memory, as the kind that `place_of` finds. Fails with invalid_argument
/// where that is not what is expected. Only this function chooses how the bytes of a device move:
/// today always through the host's memory (device_region). A UCX that moves them itself would get a
/// memory_region_core here.
result<std::shared_ptr<exposed_region>> expose_memory(std::shared_ptr<context_core> context,
                                                      std::span<std::byte> bytes, access granted,
                                                      const std::optional<memory_place>& expected);

/// Allocates `size` zeroed bytes at `place`, and exposes them.
result<std::shared_ptr<exposed_region>> allocate_memory(std::shared_ptr<context_core> context,
                                                        std::size_t size, access granted,
                                                        const memory_place& place);

/// Exposes memory that the program has registered with UCX.
result<std::shared_ptr<exposed_region>> adopt_memory(std::shared_ptr<context_core> context,
                                                     ucp_mem* registered, access granted);

}  // namespace ucx::detail
