// The bytes that go over a socket of this library: docs/reference/wire-format.md, "Sockets".
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/wire.hpp"

namespace ucx::detail {

/// Each side begins with it: letters, version, verdict. It stays in every version.
struct preamble {
  static constexpr std::size_t size = 8;
  static constexpr std::uint16_t version_number = 1;

  static constexpr std::array<std::byte, size> encoded{
      std::byte{'U'}, std::byte{'X'}, std::byte{'S'}, std::byte{'C'},
      std::byte{1},   std::byte{0},   std::byte{0},   std::byte{0}};

  /// Says to a peer that its user is not let in.
  static constexpr std::array<std::byte, size> refusal{
      std::byte{'U'}, std::byte{'X'}, std::byte{'S'}, std::byte{'C'},
      std::byte{1},   std::byte{0},   std::byte{1},   std::byte{0}};

  enum class verdict { ours, refused, other_version, foreign };
  /// Reads the whole of one.
  static verdict look_at(std::span<const std::byte, size> said) noexcept {
    if (!std::equal(encoded.begin(), encoded.begin() + 4, said.begin())) return verdict::foreign;
    if (std::equal(refusal.begin(), refusal.end(), said.begin())) return verdict::refused;
    const bool known = std::equal(encoded.begin(), encoded.end(), said.begin());
    return known ? verdict::ours : verdict::other_version;
  }
};

/// Begins each message; its header and its payload follow.
struct segment_head {
  static constexpr std::size_t size = 8;
  static constexpr std::size_t longest_header = 8192;
  static constexpr std::size_t longest_payload = std::size_t{512} << 10U;
  static constexpr std::byte with_file{1};

  std::uint32_t payload = 0;
  std::uint16_t header = 0;
  std::uint8_t id = 0;
  bool has_file = false;  ///< A file comes with it, unless it was lost on its way. No payload.

  std::array<std::byte, size> encode() const noexcept {
    std::array<std::byte, size> made = {};
    put_at(std::span(made), 0, payload);
    put_at(std::span(made), 4, header);
    put_at(std::span(made), 6, id);
    made[7] = has_file ? with_file : std::byte{0};
    return made;
  }
};

/// Returns nothing where it is longer than any, or reserved bits are set.
inline std::optional<segment_head> decode_segment_head(
    std::span<const std::byte, segment_head::size> said) noexcept {
  segment_head read;
  read.payload = take_at<std::uint32_t>(said, 0);
  read.header = take_at<std::uint16_t>(said, 4);
  read.id = take_at<std::uint8_t>(said, 6);
  read.has_file = said[7] == segment_head::with_file;
  if (read.payload > segment_head::longest_payload || read.header > segment_head::longest_header ||
      (said[7] != std::byte{0} && !(read.has_file && read.payload == 0))) {
    return std::nullopt;
  }
  return read;
}

}  // namespace ucx::detail
