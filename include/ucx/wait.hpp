#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <system_error>

#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/request.hpp"

namespace ucx {

// Waits for several requests, of any workers. They drive every worker that has no thread. They end
// no request, and each request reports its own outcome. Empty requests have ended.
// Errors: would_deadlock inside a handler of a worker that would have to be waited for.

/// Waits until one of `requests` has ended, and returns the lowest index of those that have.
/// Returns nothing when none has ended within `limit`, or there are none.
UCXIO_EXPORT std::optional<std::size_t> wait_any(
    std::span<const request> requests,
    std::chrono::nanoseconds limit = std::chrono::nanoseconds::max(), std::error_code& ec = throws);
UCXIO_EXPORT std::optional<std::size_t> wait_any_until(
    std::span<const request> requests, std::chrono::steady_clock::time_point deadline,
    std::error_code& ec = throws);

/// Waits until all of `requests` have ended, `limit` at most. Returns whether they have.
UCXIO_EXPORT bool wait_all(std::span<const request> requests,
                           std::chrono::nanoseconds limit = std::chrono::nanoseconds::max(),
                           std::error_code& ec = throws);
UCXIO_EXPORT bool wait_all_until(std::span<const request> requests,
                                 std::chrono::steady_clock::time_point deadline,
                                 std::error_code& ec = throws);

}  // namespace ucx
