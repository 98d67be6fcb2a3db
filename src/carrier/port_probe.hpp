// Asks a port what it speaks, where UCX found no server.
#pragma once

#include <chrono>

#include "ucx/socket_address.hpp"

namespace ucx::detail {

enum class spoken { unknown, tls, clear };

/// Connects, says what a client in the clear says first, and looks at the answer. Takes `limit` at
/// most.
spoken spoken_at(const socket_address& port, std::chrono::milliseconds limit) noexcept;

}  // namespace ucx::detail
