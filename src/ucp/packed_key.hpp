// The form of UCX's packed remote keys, as far as a reader of them depends on it.
#pragma once

#include <cstddef>
#include <span>

namespace ucx::detail {

/// UCX reads a key without looking where it ends. Behind one that `is_packed_key` it reads no more
/// than so many bytes, if they are `key_end`.
inline constexpr std::size_t key_padding = 1024;
inline constexpr std::byte key_end{0xff};

/// Returns whether UCX (1.13 to 1.22) can read these bytes as a key to memory of the host. That is
/// a map of memory domains (`u64`) and the type of memory, then for each domain a length and that
/// many bytes. UCX itself checks nothing of what a peer chose.
bool is_packed_key(std::span<const std::byte> key) noexcept;

}  // namespace ucx::detail
