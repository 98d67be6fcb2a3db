// Several ranges of a region in one message: docs/reference/wire-format.md, "Batches".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ucx::detail {

struct byte_range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Limits of one message, which keep what an owner has to remember for a peer small.
inline constexpr std::size_t most_ranges = 4096;
inline constexpr std::uint64_t most_batch_bytes = std::uint64_t{64} << 10U;
/// Bytes of a list before its first range, and of each range.
inline constexpr std::size_t range_list_head = 8;
inline constexpr std::size_t range_size = 16;

/// Ranges as they lie in a message. Refers to its bytes.
class range_list {
 public:
  /// Begins a list in `wire`; so many ranges are appended next.
  static void begin(std::size_t count, std::vector<std::byte>& wire);
  static void append(const byte_range& range, std::vector<std::byte>& wire);
  /// Reads one; nothing if it is damaged, too long, or has an empty range.
  static std::optional<range_list> decode(std::span<const std::byte> wire) noexcept;

  std::size_t size() const noexcept { return ranges_.size() / range_size; }
  byte_range at(std::size_t index) const noexcept;
  /// Returns the bytes of all ranges together: `most_batch_bytes` at most.
  std::uint64_t total() const noexcept { return total_; }
  /// Returns what follows the list.
  std::span<const std::byte> rest() const noexcept { return rest_; }

 private:
  std::span<const std::byte> ranges_;
  std::span<const std::byte> rest_;
  std::uint64_t total_ = 0;
};

}  // namespace ucx::detail
