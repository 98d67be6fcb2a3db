#include "ucx/peer_address.hpp"

#include "base/result.hpp"
#include "ucx/error.hpp"
#include "wire/protocol.hpp"
#include "wire/wire.hpp"

namespace ucx {
namespace {

using detail::failure;
using detail::result;

constexpr std::size_t longest = detail::longest_worker_address;

// Reads the bytes that `encode()` made.
result<worker_address> decoded(std::span<const std::byte> wire) {
  const detail::envelope opened(wire, detail::worker_address_letters);
  if (opened.outcome() == detail::envelope::verdict::intact && opened.body().size() <= longest) {
    return worker_address::from_native(opened.body());
  }
  if (opened.outcome() == detail::envelope::verdict::other_version) {
    return failure{errc::version_mismatch,
                   "reading a worker address of wire version " + std::to_string(opened.version()) +
                       " (this library speaks version " +
                       std::to_string(detail::protocol_version_number) + ")"};
  }
  return failure{errc::bad_address, "reading a worker address of " + std::to_string(wire.size()) +
                                        " bytes (cut off, changed on its way, or something else)"};
}

int value_of_digit(char digit) noexcept {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'a' && digit <= 'f') return digit - 'a' + 10;
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

// Returns the bytes that `text` gives in hexadecimal; nothing if it is not hexadecimal.
std::vector<std::byte> bytes_of(std::string_view text) {
  if (text.size() % 2 != 0) return {};
  std::vector<std::byte> bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i < text.size(); i += 2) {
    const int high = value_of_digit(text[i]);
    const int low = value_of_digit(text[i + 1]);
    if (high < 0 || low < 0) return {};
    bytes.push_back(static_cast<std::byte>(high * 16 + low));
  }
  return bytes;
}

}  // namespace

worker_address worker_address::from_native(std::span<const std::byte> bytes) {
  if (bytes.size() > longest) {
    throw error(errc::invalid_argument,
                "taking a worker address of " + std::to_string(bytes.size()) +
                    " bytes (the longest has " + std::to_string(longest) + ")");
  }
  worker_address made;
  made.bytes_.assign(bytes.begin(), bytes.end());
  return made;
}

std::vector<std::byte> worker_address::encode() const {
  detail::wire_writer writer = detail::envelope::begin(detail::worker_address_letters);
  writer.put(bytes_);
  return detail::envelope::end(std::move(writer));
}

worker_address worker_address::decode(std::span<const std::byte> wire, std::error_code& ec) {
  return decoded(wire).or_end(ec);
}

std::string to_string(const worker_address& address) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::byte value : address.encode()) {
    text += digits[std::to_integer<std::size_t>(value >> 4U)];
    text += digits[std::to_integer<std::size_t>(value & std::byte{15})];
  }
  return text;
}

worker_address parse_worker_address(std::string_view text, std::error_code& ec) {
  return worker_address::decode(bytes_of(text), ec);
}

}  // namespace ucx

std::size_t std::hash<ucx::worker_address>::operator()(
    const ucx::worker_address& address) const noexcept {
  return static_cast<std::size_t>(ucx::detail::checksum(address.native()));
}
