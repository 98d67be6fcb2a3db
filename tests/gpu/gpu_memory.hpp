// Memory of every kind on the first device, by public names only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "ucx/buffer.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::test {

inline constexpr auto gpu_kinds = {memory_kind::host, memory_kind::cuda_pinned, memory_kind::cuda,
                                   memory_kind::cuda_managed};

/// A pool for each kind, of the device 0. They stay: a driver may end before what is static does.
inline memory_pool& pool_of(memory_kind kind) {
  static auto& pools = *new std::map<memory_kind, memory_pool>;
  const memory_place place{kind, kind == memory_kind::host ? -1 : 0};
  return pools.try_emplace(kind, place).first->second;
}

inline buffer filled(memory_kind kind, std::uint64_t seed, std::size_t size) {
  buffer made(pool_of(kind), size);
  copy_memory(made.data(), pattern(size, seed).data(), size);
  return made;
}

inline bool holds(std::span<const std::byte> bytes, std::uint64_t seed,
                  std::uint64_t position = 0) {
  std::vector<std::byte> seen(bytes.size());
  copy_memory(seen.data(), bytes.data(), bytes.size());
  return holds_pattern(seen, seed, position);
}

}  // namespace ucx::test
