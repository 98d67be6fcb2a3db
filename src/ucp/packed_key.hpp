// UCX's packed remote keys of peers, as far as a reader of them depends on their form.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace ucx::detail {

/// Returns whether UCX (1.13 to 1.22) can read these bytes as a key. That is a map of memory
/// domains (`u64`) and the type of memory, then for each domain a length and that many bytes. UCX
/// itself checks nothing of what a peer chose.
bool is_packed_key(std::span<const std::byte> key) noexcept;

/// Returns whether such a key is to memory of the host, by 1 to 32 domains.
bool is_key_of_domains(std::span<const std::byte> key) noexcept;

/// A key of a peer's, behind which UCX may look for its end.
class padded_key {
 public:
  static constexpr std::size_t longest = 4096;

  /// Takes a key that UCX can read, and that is not too long; nothing of other bytes.
  explicit padded_key(std::span<const std::byte> key) noexcept;
  padded_key(const padded_key&) = delete;
  padded_key& operator=(const padded_key&) = delete;

  /// Returns what UCX unpacks; null where the bytes were no key.
  const void* data() const noexcept { return is_key_ ? bytes_.data() : nullptr; }

 private:
  /// UCX looks no further behind a key than so, if it finds nothing but `end`.
  static constexpr std::size_t padding = 1024;
  static constexpr std::byte end{0xff};

  const bool is_key_;
  std::array<std::byte, longest + padding> bytes_;  // not all of it is written
};

}  // namespace ucx::detail
