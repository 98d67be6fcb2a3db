// The messages between the two ends of a pipe: docs/reference/wire-format.md, "Pipes".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ucx/receive_target.hpp"

namespace ucx::detail {

/// The version of pipes that this library speaks.
inline constexpr std::uint16_t pipe_version = 1;

/// The kind of a message of a pipe: the last byte of the tag.
enum class pipe_said : std::uint8_t {
  data = 1,    ///< Writer: bytes of the stream, nothing else.
  end = 2,     ///< Writer: a `pipe_end`.
  placed = 9,  ///< Writer: a `pipe_place`, where the next bytes of the stream lie.
  hello = 17,  ///< Reader, first: a `pipe_hello`.
  taken = 18,  ///< Reader: a `pipe_count` of the bytes that its program has taken.
  left = 19,   ///< Reader: the same, and it will take no more.
  ring = 20,   ///< Reader: a `pipe_ring`, which a writer of the same host may use.
};

/// Returns the tag of a message that has no bytes of the stream.
constexpr std::uint64_t pipe_tag(pipe_said what) noexcept {
  return 0x7563'7869'7069'7000U | static_cast<std::uint64_t>(what);
}
/// Returns the tag of the message with the next bytes, `data` or `placed`. It tells that `number`
/// others went before, modulo 2^16: so a reader notices one that is missing.
constexpr std::uint64_t pipe_tag(pipe_said what, std::uint16_t number) noexcept {
  return 0x7563'7869'6400'0000U | std::uint64_t{number} << 8U | static_cast<std::uint64_t>(what);
}
constexpr pipe_said pipe_said_of(std::uint64_t tag) noexcept {
  return static_cast<pipe_said>(tag & 0xffU);
}
constexpr std::uint16_t pipe_number_of(std::uint64_t tag) noexcept {
  return static_cast<std::uint16_t>(tag >> 8U);
}
/// Everything that a reader says.
constexpr tag_match pipe_of_reader() noexcept {
  return {pipe_tag(static_cast<pipe_said>(16)), ~std::uint64_t{15}};
}

/// The next bytes of the stream, wherever they are, and whatever their number.
constexpr tag_match pipe_of_data() noexcept {
  constexpr std::uint64_t varies =
      pipe_tag(pipe_said::data, 0) ^ pipe_tag(pipe_said::placed, 0xffff);
  return {pipe_tag(pipe_said::data, 0), ~varies};
}

/// The limits of a reader.
struct pipe_hello {
  static constexpr std::size_t size = 24;
  std::uint16_t version = pipe_version;
  std::uint16_t receives =
      1;  ///< Messages that are received although the program does not read; 1 at least.
  std::uint64_t piece = 0;   ///< Bytes of one message of data at most.
  std::uint64_t window = 0;  ///< Bytes that may be sent and not taken, by `pipe_message_cost`.
};

/// How a writer ends.
struct pipe_end {
  static constexpr std::size_t size = 16;
  std::uint64_t total = 0;   ///< Bytes that it has sent.
  std::uint32_t status = 0;  ///< 0: that was all. Else the `errc` for which it gave up.
};

/// Memory of the reader's that a writer may map: places of `stride` bytes each, one behind the
/// other. The last `pipe_hello::piece` bytes of each take what would else be a message.
struct pipe_ring {
  static constexpr std::uint32_t most_places = 4096;
  static constexpr std::uint32_t most_stride = std::uint32_t{1} << 30U;
  std::uint32_t places = 0;
  std::uint32_t stride = 0;
  std::vector<std::byte> descriptor = {};  ///< As `remote_descriptor::encode()` gives it.
};

/// So many bytes lie in that place, until they are counted as taken.
struct pipe_place {
  static constexpr std::size_t size = 8;
  std::uint32_t place = 0;
  std::uint32_t length = 0;
};

using pipe_hello_bytes = std::array<std::byte, pipe_hello::size>;
using pipe_end_bytes = std::array<std::byte, pipe_end::size>;
using pipe_count_bytes = std::array<std::byte, 8>;
using pipe_place_bytes = std::array<std::byte, pipe_place::size>;

/// Nothing that a reader says is longer.
inline constexpr std::size_t longest_of_reader = 2048;

pipe_hello_bytes encode(const pipe_hello& said) noexcept;
pipe_end_bytes encode(const pipe_end& said) noexcept;
pipe_count_bytes encode_pipe_count(std::uint64_t bytes) noexcept;
pipe_place_bytes encode(const pipe_place& said) noexcept;
std::vector<std::byte> encode(const pipe_ring& said);

// Each returns nothing for bytes that are no such message. Of another version of pipes
// `decode_pipe_hello` tells the version alone.
std::optional<pipe_hello> decode_pipe_hello(std::span<const std::byte> said) noexcept;
std::optional<pipe_end> decode_pipe_end(std::span<const std::byte> said) noexcept;
std::optional<std::uint64_t> decode_pipe_count(std::span<const std::byte> said) noexcept;
std::optional<pipe_place> decode_pipe_place(std::span<const std::byte> said) noexcept;
std::optional<pipe_ring> decode_pipe_ring(std::span<const std::byte> said);

/// A message takes so much of the window besides its bytes, because it takes that of the receiver's
/// memory (docs/reference/messages.md, "Credit"). A message alone always fits.
inline constexpr std::uint64_t pipe_message_cost = 256;

/// A writer may have this much on the way at most, whatever a reader grants.
inline constexpr std::uint64_t most_pipe_window = std::uint64_t{1} << 30U;
inline constexpr std::uint64_t least_pipe_piece = std::uint64_t{1} << 10U;

// Little-endian numbers, as docs/reference/wire-format.md has them.

/// Writes the lowest `bytes.size()` bytes of `value`.
inline void put_pipe_number(std::span<std::byte> bytes, std::uint64_t value) noexcept {
  for (std::byte& each : bytes) {
    each = static_cast<std::byte>(value & 0xffU);
    value >>= 8U;
  }
}

/// Reads what `put_pipe_number` wrote.
inline std::uint64_t pipe_number_in(std::span<const std::byte> bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = (value << 8U) | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

}  // namespace ucx::detail
