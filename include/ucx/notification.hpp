#pragma once

#include <cstdint>

#include "ucx/completion_handler.hpp"
#include "ucx/socket_address.hpp"

namespace ucx {

/// The message of a writer to the owner of a region, sent when its writes were in place.
struct notification {
  std::uint64_t value = 0;       ///< The writer's number, with a meaning that both agreed on.
  std::uint64_t connection = 0;  ///< Tells the connections of the owner's workers apart.
  socket_address peer = {};      ///< The writer's address; empty where there is none.
};

/// Called for each notification of a region, on the thread that drives the worker over which it
/// came. It must not block.
using notification_handler = move_only_handler<const notification&>;

}  // namespace ucx
