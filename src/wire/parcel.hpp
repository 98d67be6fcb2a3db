// The parcels in which messages of applications travel: docs/reference/wire-format.md, "Parcels".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "ucx/memory_place.hpp"

namespace ucx::detail {

/// The kinds of parcels. Values are of the wire, where 9 is a `brief_parcel`.
enum class parcel_code : std::uint8_t {
  message = 1,     ///< A whole message: the user's header behind ours, the bytes as payload.
  announce = 2,    ///< A message that the receiver has to ask for; the user's header behind ours.
  grant = 3,       ///< Receiver: send the message to the receive `tag`; 0: it is taken already.
  piece = 4,       ///< A part of a granted message, for the receive `number`.
  refusal = 5,     ///< Receiver: will not have the message, or no more of it (`status`).
  withdrawal = 6,  ///< Sender: the announced message will not be sent, or no more of it.
  credit = 7,      ///< Nothing but `credit`.
  loan = 8,        ///< The room that the receiver of messages lends changes, or is to.
};

/// The kinds of messages. Values are of the wire.
enum class message_kind : std::uint8_t {
  tagged = 0,  ///< Matched by tag.
  active = 1,  ///< For the handler of the message's number.
  stream = 2,  ///< A part of the connection's byte stream.
};

/// The words of a `loan`, in `tag`. They are about `length` units. Values are of the wire.
enum class loan_change : std::uint64_t {
  more = 1,    ///< Lender: they are lent, too.
  less = 2,    ///< Lender: of those that were used, they do not come back.
  recall = 3,  ///< Lender: give back what you do not use, down to a loan of so many.
  back = 4,    ///< Borrower, to a recall: they are given back; may be none.
  want = 5,    ///< Borrower: there were too few.
};

/// The header of every parcel but brief ones: 40 bytes, unused fields zero.
struct parcel {
  static constexpr std::size_t size = 40;
  /// The longest header of the user's that can be said.
  static constexpr std::size_t longest_user_header = 4096;
  using bytes = std::array<std::byte, size>;

  parcel_code code = parcel_code::credit;
  message_kind kind = message_kind::tagged;
  bool acknowledge = false;                ///< Message: the sender waits for a grant of nothing.
  bool lends = false;                      ///< Announce: a cma_offer follows the user's header.
  bool keyed = false;                      ///< Likewise, an rma_offer; not both.
  memory_kind memory = memory_kind::host;  ///< Message, announce: of the sender's bytes.
  std::uint16_t header_length = 0;         ///< Message, announce: of the user's header.
  std::uint16_t status = 0;                ///< Refusal, withdrawal: an `errc`; shares its place.
  std::uint16_t credit = 0;                ///< Units of the sender's window that are free again.
  std::uint64_t session = 0;
  /// Message, announce: its place in the order of the session's messages, from 1 on. Grant,
  /// refusal, withdrawal: that of the message. Piece: the receive's number.
  std::uint64_t number = 0;
  /// Message, announce: the tag, or the number of an active message. Grant: the receive's number.
  /// Loan: a `loan_change`.
  std::uint64_t tag = 0;
  /// Message, announce: bytes of the message. Piece: offset of the payload. Grant: bytes to send.
  /// Loan: units.
  std::uint64_t length = 0;

  void encode(std::span<std::byte, size> into) const noexcept;
};

/// A parcel, and the user's header that came with it.
struct read_parcel {
  parcel said;
  std::span<const std::byte> header;
  std::span<const std::byte> offer;  ///< Announce that lends, or is keyed: what it offers.
};

/// Reads the header of a parcel with `payload` bytes of payload; nothing if it breaks a rule.
std::optional<read_parcel> decode_parcel(std::span<const std::byte> wire,
                                         std::size_t payload) noexcept;

/// The unit of a sender's window. A message takes one unit for itself, and as many as hold the
/// bytes that its receiver has to keep.
inline constexpr std::size_t window_unit = 256;
constexpr std::size_t units_of(std::size_t kept_bytes) noexcept {
  return 1 + (kept_bytes + window_unit - 1) / window_unit;
}

}  // namespace ucx::detail
