#include "detail/frame.hpp"

#include "detail/protocol.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr std::byte magic_first{0x55};  // "UX"
constexpr std::byte magic_second{0x58};

template <class Integer>
void put(frame::bytes& into, std::size_t at, Integer value) noexcept {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    into[at + i] = static_cast<std::byte>(value >> (8 * i));
  }
}

template <class Integer>
Integer take(std::span<const std::byte> from, std::size_t at) noexcept {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<Integer>(static_cast<Integer>(from[at + i]) << (8 * i));
  }
  return value;
}

}  // namespace

void frame::encode(bytes& into) const noexcept {
  into[0] = magic_first;
  into[1] = magic_second;
  into[2] = std::byte{protocol_version_number};
  into[3] = static_cast<std::byte>(code);
  put(into, 4, status);
  put(into, 8, session);
  put(into, 16, request);
  put(into, 24, region);
  put(into, 32, incarnation);
  put(into, 40, generation);
  put(into, 48, offset);
  put(into, 56, length);
}

std::optional<frame> decode_frame(std::span<const std::byte> wire) noexcept {
  // Sixteen bytes are the same in every version; the rest only in ours.
  if (wire.size() < 16 || wire[0] != magic_first || wire[1] != magic_second) return std::nullopt;
  frame read;
  read.version = static_cast<std::uint8_t>(wire[2]);
  const auto code = static_cast<std::uint8_t>(wire[3]);
  const bool known = code >= static_cast<std::uint8_t>(opcode::hello) &&
                     code <= static_cast<std::uint8_t>(opcode::farewell);
  if (!known || read.version == 0) return std::nullopt;
  read.code = static_cast<opcode>(code);
  read.status = take<std::uint32_t>(wire, 4);
  read.session = take<std::uint64_t>(wire, 8);
  if (read.version != protocol_version_number) return read;
  if (wire.size() != frame::size) return std::nullopt;
  read.request = take<std::uint64_t>(wire, 16);
  read.region = take<std::uint64_t>(wire, 24);
  read.incarnation = take<std::uint64_t>(wire, 32);
  read.generation = take<std::uint64_t>(wire, 40);
  read.offset = take<std::uint64_t>(wire, 48);
  read.length = take<std::uint64_t>(wire, 56);
  return read;
}

// Statuses of the wire are the values of `errc` in version 1: they are never renumbered.
static_assert(static_cast<int>(errc::invalid_argument) == 1);
static_assert(static_cast<int>(errc::permission_denied) == 4);
static_assert(static_cast<int>(errc::revoked) == 7);
static_assert(static_cast<int>(errc::unexpected) == 31);

std::error_code status_error(std::uint32_t status) noexcept {
  if (status == 0) return {};
  if (status > static_cast<std::uint32_t>(errc::unexpected)) return errc::protocol_error;
  return static_cast<errc>(status);
}

std::uint32_t error_status(std::error_code ec) noexcept {
  if (!ec) return 0;
  if (ec.category() != error_category()) return static_cast<std::uint32_t>(errc::unexpected);
  return static_cast<std::uint32_t>(ec.value());
}

}  // namespace ucx::detail
