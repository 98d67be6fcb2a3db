#pragma once

#include <cstdint>

#include "ucx/export.hpp"

namespace ucx {

/// Counters of the copies between memory of CUDA devices and host buffers, on the way from or to
/// peers, and of direct copies (`docs/how-to/gpu.md`).
struct staging_statistics {
  std::uint64_t copies = 0;          ///< Copies that the driver was asked for.
  std::uint64_t bytes = 0;           ///< Bytes of these copies.
  std::uint64_t unpinned_bytes = 0;  ///< Of these bytes, those through memory that was not pinned.
  std::uint64_t memory = 0;          ///< Bytes of the present buffers, in use or idle.
  std::uint64_t pinned_memory = 0;   ///< Of these, the pinned ones.
  /// Bytes that this side's driver copied between its own memory and memory of another process's
  /// device. The other process did nothing. The counters before have them, too, where this side's
  /// memory was neither pinned nor a device's.
  std::uint64_t direct_bytes = 0;
  union {
    /// Reads and writes that began as direct copies, and went by message.
    std::uint64_t direct_fallbacks = 0;
#if UCXIO_OLD_NAMES
    [[deprecated("direct_fallbacks")]] std::uint64_t not_direct;
#endif
  };
};

}  // namespace ucx
