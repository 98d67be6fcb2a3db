// How a region is accessed: rights, transfer methods, atomic operations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The accesses that a region grants to peers: reads, writes, or both. A peer that breaks the rules
/// is held to them only where `docs/how-to/security.md`, "Checks", names a check of the owner or of
/// the system. RDMA hardware has none.
enum class access : std::uint8_t { read = 1, write = 2, read_write = 3 };

/// Returns whether `granted` includes everything in `wanted`.
constexpr bool includes(access granted, access wanted) noexcept {
  return (static_cast<unsigned>(granted) & static_cast<unsigned>(wanted)) ==
         static_cast<unsigned>(wanted);
}

template <>
UCXIO_EXPORT std::string_view detail::enum_name(access value) noexcept;

/// The mechanism that moves the bytes of a `remote_region` (`docs/reference/regions.md`, "How bytes
/// move").
enum class transfer_method : std::uint8_t {
  automatic,  ///< Chosen by the abilities of the connection's transports.
  message,    ///< The owner answers by active messages and checks every access.
  /// UCX's transport reads and writes the owner's memory, by RDMA or by UCX's shared memory on one
  /// host. The owner's CPU sleeps. Writes go by message where UCX only reads, by its CMA.
  rma,
  mapped,  ///< The owner's memory is mapped here, and read and written in place.
  /// Linux's cross-memory attach: on one host, this process reads the owner's memory in place by
  /// process_vm_readv(2). Writes go by message.
  cma,
  /// CUDA's interprocess communication: on one host, the driver copies from and to the owner's
  /// device memory.
  cuda_ipc,
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(transfer_method value) noexcept;

#if UCXIO_OLD_NAMES
using way [[deprecated("transfer_method")]] = transfer_method;
#endif

/// The effect of an atomic access on the number in the region.
enum class atomic_operation : std::uint8_t {
  load = 1,          ///< Leaves it.
  store,             ///< Replaces it.
  compare_exchange,  ///< Replaces it if it equals `expected`.
  add,               ///< Adds to it, modulo 2^32 or 2^64.
  bit_and,
  bit_or,
  bit_xor,
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(atomic_operation value) noexcept;

/// One atomic access to a number of 4 or 8 bytes, as `remote_atomic` makes them.
struct atomic_access {
  atomic_operation operation = atomic_operation::load;
  std::size_t width = 8;       ///< 4 or 8 bytes, in the owner's byte order.
  std::uint64_t operand = 0;   ///< Used by every operation but `load`.
  std::uint64_t expected = 0;  ///< Used by `compare_exchange`.
};

}  // namespace ucx
