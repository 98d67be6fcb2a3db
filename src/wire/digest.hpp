// The digest against which a piece of an answer is checked: docs/reference/wire-format.md, "Checked
// reads".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "wire/frame.hpp"

namespace ucx::detail {

/// Returns whether a `read` asks for pieces that can be checked.
inline bool wants_digests(const frame& asked) noexcept {
  return (asked.status & frame::with_digests) != 0;
}

/// Writes the digest of `payload` into `said`, a `data` frame that is otherwise complete. The
/// digest is of these bytes as a part of the answer to `asked`, and of nothing else.
/// Cost: one pass over the bytes, some 20 GB/s.
void seal(frame& said, const frame& asked, std::span<const std::byte> payload) noexcept;

enum class seal_state {
  intact,
  damaged,
  none,  ///< The owner wrote no digest: it is of a version that knows none.
};

/// Compares what has arrived with what its sender wrote into the frame. `asked` is what the reader
/// has asked for, whatever arrived at the owner.
seal_state check_seal(const frame& said, const frame& asked,
                      std::span<const std::byte> payload) noexcept;

}  // namespace ucx::detail
