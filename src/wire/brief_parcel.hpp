// The header of a message that wants no answer, in fewer bytes: docs/reference/wire-format.md,
// "Parcels".
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "wire/parcel.hpp"
#include "wire/protocol.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {

/// A `message` that wants no answer. Its code is one more than a `parcel` has; what it says is
/// less.
struct brief_parcel {
  static constexpr std::byte code{9};
  static constexpr std::size_t longest = 24;
  /// The most credit that it gives.
  static constexpr std::uint16_t most_credit = 255;

  message_kind kind = message_kind::tagged;
  std::uint8_t credit = 0;
  std::uint32_t number = 0;  ///< The lower half: see `whole_number`.
  std::uint64_t session = 0;
  std::uint64_t tag = 0;

  /// Returns how many bytes it takes.
  std::size_t encode(std::span<std::byte, longest> into) const noexcept {
    const bool short_tag = tag <= ~std::uint32_t{0};
    const std::size_t tag_size = tag == 0 ? 0 : short_tag ? 4 : 8;
    into[0] = std::byte{protocol_version_number};
    into[1] = code;
    into[2] = static_cast<std::byte>(static_cast<unsigned>(kind) | (tag_size << 4U));
    into[3] = static_cast<std::byte>(credit);
    put_at(into, 4, number);
    put_at(into, 8, session);
    put_at(into, tag_at, tag);  // a short one's upper half is not sent
    return tag_at + tag_size;
  }
  /// Returns the parcel that says the same, of `header` bytes of the user's and `payload`, where
  /// the message `expected` is the next one.
  parcel whole(std::uint64_t expected, std::size_t header, std::size_t payload) const noexcept;

  static constexpr std::size_t tag_at = 16;
};

/// One, and the user's header that came with it.
struct read_brief_parcel {
  brief_parcel said;
  std::span<const std::byte> header;
};

/// Returns whether these bytes say that they begin with one.
inline bool is_brief(std::span<const std::byte> wire) noexcept {
  return wire.size() >= 2 && wire[1] == brief_parcel::code;
}

/// Reads one; nothing if it breaks a rule.
inline std::optional<read_brief_parcel> decode_brief_parcel(
    std::span<const std::byte> wire) noexcept {
  if (wire.size() < brief_parcel::tag_at || wire[0] != std::byte{protocol_version_number} ||
      wire[1] != brief_parcel::code) {
    return {};
  }
  const unsigned kind = static_cast<unsigned>(wire[2]) & 15U;
  const std::size_t tag_size = static_cast<unsigned>(wire[2]) >> 4U;
  const bool is_size = tag_size == 0 || tag_size == 4 || tag_size == 8;
  const std::size_t ours = brief_parcel::tag_at + tag_size;
  if (kind > static_cast<unsigned>(message_kind::stream) || !is_size || wire.size() < ours ||
      wire.size() - ours > parcel::longest_user_header) {
    return {};
  }
  brief_parcel said;
  said.kind = static_cast<message_kind>(kind);
  said.credit = static_cast<std::uint8_t>(wire[3]);
  said.number = take_at<std::uint32_t>(wire, 4);
  said.session = take_at<std::uint64_t>(wire, 8);
  if (tag_size == 4) said.tag = take_at<std::uint32_t>(wire, brief_parcel::tag_at);
  if (tag_size == 8) said.tag = take_at<std::uint64_t>(wire, brief_parcel::tag_at);
  return read_brief_parcel{said, wire.subspan(ours)};
}

/// Returns the number next to `expected` whose lower half is `lower`.
constexpr std::uint64_t whole_number(std::uint32_t lower, std::uint64_t expected) noexcept {
  const auto ahead = static_cast<std::int32_t>(lower - static_cast<std::uint32_t>(expected));
  return expected + static_cast<std::uint64_t>(std::int64_t{ahead});
}

inline parcel brief_parcel::whole(std::uint64_t expected, std::size_t header,
                                  std::size_t payload) const noexcept {
  parcel same;
  same.code = parcel_code::message;
  same.kind = kind;
  same.header_length = static_cast<std::uint16_t>(header);
  same.credit = credit;
  same.session = session;
  same.number = whole_number(number, expected);
  same.tag = tag;
  same.length = payload;
  return same;
}

}  // namespace ucx::detail
