// Connections of TCP that a thread waits for, without a worker.
#pragma once

#include <chrono>

#include "base/owned_descriptor.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// Waits for one of poll(2)'s `events`. Returns 0, ETIMEDOUT, or another error number.
int await_socket(int descriptor, short events,
                 std::chrono::steady_clock::time_point until) noexcept;

/// Connects to an address of IP; the socket does not block. Where there is none, errno says why:
/// ETIMEDOUT at `until`.
owned_descriptor dial(const socket_address& to,
                      std::chrono::steady_clock::time_point until) noexcept;

}  // namespace ucx::detail
