// The memory in which bytes beside a call, or beside its answer, land.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "call/call_message.hpp"
#include "ucx/call_memory.hpp"

namespace ucx::detail {

/// Where the memory beside an answer goes, and how much of it there may be.
struct call_landing {
  call_memory where = {};
  std::uint64_t most = 0;
};

/// A body, and the parts beside it, before they are received.
struct landed_message {
  std::vector<std::byte> body = {};
  std::vector<landed_part> parts = {};

  /// Takes memory for what a message of `length` bytes has. Under no lock: resources are the
  /// program's. REQUIRES: it is not shorter than its parts.
  /// Throws what a resource throws, and std::bad_alloc.
  void make_room(std::uint64_t length, const call_parts& told, const call_memory& where);
  /// Returns where its bytes go.
  std::vector<std::span<std::byte>> runs();
};

}  // namespace ucx::detail
