#include "wire/frame.hpp"

#include "ucx/error.hpp"
#include "wire/protocol.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

constexpr std::byte magic_first{0x55};  // "UX"
constexpr std::byte magic_second{0x58};

bool known(std::uint8_t code) noexcept {
  const auto between = [code](opcode first, opcode last) {
    return code >= static_cast<std::uint8_t>(first) && code <= static_cast<std::uint8_t>(last);
  };
  return between(opcode::hello, opcode::control) || between(opcode::atomic, opcode::pass_file);
}

}  // namespace

void frame::encode(std::span<std::byte, size> into) const noexcept {
  into[0] = magic_first;
  into[1] = magic_second;
  into[2] = std::byte{protocol_version_number};
  into[3] = static_cast<std::byte>(code);
  put_at(into, 4, status);
  put_at(into, 8, session);
  put_at(into, 16, request);
  put_at(into, 24, region);
  put_at(into, 32, incarnation);
  put_at(into, 40, generation);
  put_at(into, 48, offset);
  put_at(into, 56, length);
}

std::optional<frame> decode_frame(std::span<const std::byte> wire) noexcept {
  // Sixteen bytes are the same in every version; the rest only in ours.
  if (wire.size() < 16 || wire[0] != magic_first || wire[1] != magic_second) return std::nullopt;
  frame read;
  read.version = static_cast<std::uint8_t>(wire[2]);
  const auto code = static_cast<std::uint8_t>(wire[3]);
  if (!known(code) || read.version == 0) return std::nullopt;
  read.code = static_cast<opcode>(code);
  read.status = take_at<std::uint32_t>(wire, 4);
  read.session = take_at<std::uint64_t>(wire, 8);
  if (read.version != protocol_version_number) return read;
  if (wire.size() != frame::size) return std::nullopt;
  read.request = take_at<std::uint64_t>(wire, 16);
  read.region = take_at<std::uint64_t>(wire, 24);
  read.incarnation = take_at<std::uint64_t>(wire, 32);
  read.generation = take_at<std::uint64_t>(wire, 40);
  read.offset = take_at<std::uint64_t>(wire, 48);
  read.length = take_at<std::uint64_t>(wire, 56);
  return read;
}

// Statuses of the wire are the values of `errc` in version 1: they are never renumbered.
static_assert(static_cast<int>(errc::invalid_argument) == 1);
static_assert(static_cast<int>(errc::permission_denied) == 4);
static_assert(static_cast<int>(errc::revoked) == 7);
static_assert(static_cast<int>(errc::unexpected) == 31);
static_assert(static_cast<int>(errc::not_secure) == 37);
static_assert(static_cast<int>(errc::closed_by_peer) == 38);
static_assert(static_cast<int>(errc::no_rdma) == 39);
static_assert(static_cast<int>(errc::empty_buffer) == 45);
static_assert(static_cast<int>(errc::pooled_buffer) == 48);
static_assert(static_cast<int>(errc::checksum_mismatch) == 49);
static_assert(static_cast<int>(errc::broken_pipe) == 50);
static_assert(static_cast<int>(errc::too_many_writers) == 53);
static_assert(static_cast<int>(last_errc) == 58);

std::error_code status_error(std::uint32_t status) noexcept {
  if (status == 0) return {};
  if (status > static_cast<std::uint32_t>(last_errc)) return errc::protocol_error;
  return static_cast<errc>(status);
}

std::uint32_t error_status(std::error_code ec) noexcept {
  if (!ec) return 0;
  if (ec.category() != error_category()) return static_cast<std::uint32_t>(errc::unexpected);
  return static_cast<std::uint32_t>(ec.value());
}

}  // namespace ucx::detail
