#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <span>
#include <system_error>

#include "ucx/export.hpp"
#include "ucx/request.hpp"

namespace ucx {

// Waits for several requests, of any workers. They drive every worker that no thread of its own
// drives, end nothing, and leave it to each request to tell its outcome. Empty requests have ended.
// Errors: would_deadlock inside a handler of a worker that would have to be waited for.

/// Waits until one of `requests` has ended, and returns which: the first of those; nothing when
/// none has within `limit`, or there are none.
UCXIO_EXPORT std::optional<std::size_t> wait_any(
    std::span<const request> requests,
    std::chrono::nanoseconds limit = std::chrono::nanoseconds::max());
UCXIO_EXPORT std::optional<std::size_t> wait_any(std::span<const request> requests,
                                                 std::chrono::nanoseconds limit,
                                                 std::error_code& ec);
UCXIO_EXPORT std::optional<std::size_t> wait_any_until(
    std::span<const request> requests, std::chrono::steady_clock::time_point deadline);
UCXIO_EXPORT std::optional<std::size_t> wait_any_until(
    std::span<const request> requests, std::chrono::steady_clock::time_point deadline,
    std::error_code& ec);

/// Waits until all of `requests` have ended; returns whether they have, within `limit`.
UCXIO_EXPORT bool wait_all(std::span<const request> requests,
                           std::chrono::nanoseconds limit = std::chrono::nanoseconds::max());
UCXIO_EXPORT bool wait_all(std::span<const request> requests, std::chrono::nanoseconds limit,
                           std::error_code& ec);
UCXIO_EXPORT bool wait_all_until(std::span<const request> requests,
                                 std::chrono::steady_clock::time_point deadline);
UCXIO_EXPORT bool wait_all_until(std::span<const request> requests,
                                 std::chrono::steady_clock::time_point deadline,
                                 std::error_code& ec);

}  // namespace ucx
