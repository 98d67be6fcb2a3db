// The options of an endpoint that say nothing about the way in which it is connected.
#pragma once

#include "ucx/endpoint.hpp"

namespace ucx::detail {

/// How an endpoint comes by its peer.
enum class connected_by { worker_address, socket_address, name, request };

/// Returns why an option can not be had of such a connection, beginning with the option's name;
/// nothing where all of them can.
const char* misplaced_option(const endpoint_options& options, connected_by way) noexcept;

}  // namespace ucx::detail
