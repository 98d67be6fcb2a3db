// The frames that peers exchange as headers of active messages: docs/reference/wire-format.md,
// "Frames".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <system_error>

#include "ucx/error.hpp"

namespace ucx::detail {

/// The kinds of frames. Values are of the wire.
enum class opcode : std::uint8_t {
  hello = 1,      ///< Initiator: opens a session; payload: its worker address, or nothing.
  welcome = 2,    ///< Answer to hello: the session is open, or why not (`status`).
  read = 3,       ///< Asks for `length` bytes at `offset` of `region`.
  data = 4,       ///< A piece of an answer to read: payload at `offset`, or why not.
  write = 5,      ///< Payload for `offset` of `region`.
  written = 6,    ///< Answer to write: the payload is in place, or why not.
  ping = 7,       ///< Asks for a sign of life.
  pong = 8,       ///< Answer to ping.
  bye = 9,        ///< The sender will say nothing more; everything before it was answered.
  farewell = 10,  ///< Answer to bye: the connection can be dropped.
  control = 11,   ///< Payload: a message between client and server.

  // Of regions, beyond reading and writing.
  atomic = 32,       ///< Payload: an `atomic_access` for `offset` of `region`.
  performed = 33,    ///< Answer to atomic: it was done, and `offset` is what was there before.
  read_batch = 34,   ///< Payload: the ranges that are asked for; answered by `data`.
  write_batch = 35,  ///< Payload: ranges, and the bytes for each; answered by `written`.
  notify = 36,       ///< Tells the owner of `region` the number `offset`.
  notified = 37,     ///< Answer to notify: the owner has it, or why not.
  pass_file = 38,    ///< Passes the file of `region`, beside it, with the rights in `offset`.
};

/// One frame: the same 64 bytes for every opcode, unused fields zero.
struct frame {
  static constexpr std::size_t size = 64;
  /// Bit of `status` of a read: each piece of the answer says its digest.
  static constexpr std::uint32_t with_digests = 1;
  using bytes = std::array<std::byte, size>;

  std::uint8_t version = 0;  ///< Set by encode; what the peer speaks after decode.
  opcode code = opcode::ping;
  std::uint32_t status = 0;   ///< 0, or the `errc` that answers the request; of a question: bits.
  std::uint64_t session = 0;  ///< Chosen by the initiator, at random.
  std::uint64_t request = 0;  ///< Chosen by the asking side, echoed by answers.
  std::uint64_t region = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t generation = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  /// Writes the frame, with this library's version.
  void encode(std::span<std::byte, size> into) const noexcept;
};

/// Reads a frame; nothing if it is not one. Of a frame of another version, only `version`, `code`,
/// `status` and `session` are read: their places are the same in every version.
std::optional<frame> decode_frame(std::span<const std::byte> wire) noexcept;

/// The last error that this version knows; values of the wire above it are not understood.
inline constexpr errc last_errc = errc::call_outcome_unknown;

/// Returns the error of a frame's `status`: no error for 0, protocol_error for unknown values.
std::error_code status_error(std::uint32_t status) noexcept;

/// Returns the status that says `ec` to a peer.
std::uint32_t error_status(std::error_code ec) noexcept;

}  // namespace ucx::detail
