// The rights of this process to its memory: reading, and writing.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace ucx::detail {

/// The use that a processor is to make of memory.
struct memory_use {
  bool reads = false;
  bool writes = false;
};

/// Returns why the process may not use all of `bytes` so, by the system's list of mappings; empty
/// where it may. Touches nothing. Costs a look at each mapping up to there. Where the list
/// can not be read, that is why.
std::string why_unusable(std::span<const std::byte> bytes, memory_use wanted,
                         const char* list = "/proc/self/maps");

}  // namespace ucx::detail
