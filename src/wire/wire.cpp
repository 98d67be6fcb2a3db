#include "wire/wire.hpp"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "wire/protocol.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t checksum_size = 8;
constexpr std::size_t length_offset = 8;

}  // namespace

std::uint64_t checksum(std::span<const std::byte> bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

wire_writer envelope::begin(std::string_view letters) {
  wire_writer writer;
  writer.put(std::as_bytes(std::span(letters)));
  writer.put(std::uint16_t{protocol_version_number});
  writer.put(std::uint16_t{0});
  writer.put(std::uint32_t{0});
  return writer;
}

std::vector<std::byte> envelope::end(wire_writer&& writer) {
  wire_writer length;
  length.put(static_cast<std::uint32_t>(writer.bytes().size() + checksum_size));
  std::copy(length.bytes().begin(), length.bytes().end(),
            writer.bytes().begin() + std::ptrdiff_t{length_offset});
  writer.put(checksum(writer.bytes()));
  return std::move(writer.bytes());
}

envelope::envelope(std::span<const std::byte> wire, std::string_view letters) noexcept {
  if (wire.size() < overhead) return;
  const auto sealed = wire.first(wire.size() - checksum_size);
  if (wire_reader(wire.last(checksum_size)).take<std::uint64_t>() != checksum(sealed)) return;

  wire_reader reader(sealed);
  const auto found = reader.take(letters.size());
  const auto expected = std::as_bytes(std::span(letters));
  if (!std::equal(found.begin(), found.end(), expected.begin(), expected.end())) return;
  version_ = reader.take<std::uint16_t>();
  const auto reserved = reader.take<std::uint16_t>();
  if (reader.take<std::uint32_t>() != wire.size()) return;
  if (version_ != protocol_version_number) {
    outcome_ = verdict::other_version;
  } else if (reserved == 0) {
    outcome_ = verdict::intact;
  }
  if (outcome_ != verdict::damaged) body_ = sealed.subspan(head_size);
}

}  // namespace ucx::detail
