#pragma once

#include <cstdint>

namespace ucx {

/// What was copied between the memory of CUDA devices and buffers of the host's, on its way from or
/// to peers, and what needed no such way (`docs/how-to/gpu.md`).
struct staging_statistics {
  std::uint64_t copies = 0;          ///< That the driver was asked for.
  std::uint64_t bytes = 0;           ///< Of them.
  std::uint64_t unpinned_bytes = 0;  ///< Of these, through memory that was not pinned.
  std::uint64_t memory = 0;          ///< Bytes of the buffers that there are now, in use or idle.
  std::uint64_t pinned_memory = 0;   ///< Of these, those that are pinned.
  /// Copied by this side's driver between its memory and that of a device of another process, which
  /// did nothing for it. Counted above as well where this side's memory was neither pinned nor a
  /// device's.
  std::uint64_t direct_bytes = 0;
  std::uint64_t not_direct = 0;  ///< Reads and writes that were begun so, and went by message.
};

}  // namespace ucx
