// By which descriptors the owner of a device's memory shares it with processes of the host:
// docs/reference/wire-format.md, "Region descriptor".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ucx::detail {

/// Lies in the owner's memory, where processes of the host read it beside the region's record.
struct cuda_fd_table {
  struct part {
    std::uint64_t descriptor = 0;  ///< In the owner's process.
    std::uint64_t device = 0;      ///< The file's device and inode, to check it.
    std::uint64_t inode = 0;
    std::uint64_t size = 0;
    friend bool operator==(const part&, const part&) = default;
  };
  using pool_pointer = std::array<std::byte, 64>;
  static constexpr std::size_t most_parts = 4096;
  static constexpr std::size_t longest = 16 + most_parts * 32 + 64;

  /// Allocations that lie one behind the other; or a pool, and the size of an allocation there.
  std::vector<part> parts = {};
  /// Finds the allocation in the pool: the driver's own bytes.
  std::optional<pool_pointer> pointer = {};

  std::uint64_t size() const noexcept;
  std::vector<std::byte> encode() const;
  friend bool operator==(const cuda_fd_table&, const cuda_fd_table&) = default;
};

/// Reads one; nothing if it is no such table, or its sizes make no sense.
std::optional<cuda_fd_table> decode_cuda_fd_table(std::span<const std::byte> wire);

/// Where a table is in its owner's memory: what a descriptor has in place of the driver's handle.
struct cuda_fd_location {
  std::uint64_t address = 0;
  std::uint64_t length = 0;

  std::array<std::byte, 64> encode() const noexcept;
  friend bool operator==(const cuda_fd_location&, const cuda_fd_location&) = default;
};

/// Reads one; nothing if there is none, or no table is so long.
std::optional<cuda_fd_location> decode_cuda_fd_location(
    std::span<const std::byte, 64> wire) noexcept;

}  // namespace ucx::detail
