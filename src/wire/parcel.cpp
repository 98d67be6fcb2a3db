#include "wire/parcel.hpp"

#include <algorithm>

#include "wire/cma_offer.hpp"
#include "wire/protocol.hpp"
#include "wire/rma_offer.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

constexpr std::byte acknowledge_flag{1};
constexpr std::byte lends_flag{2};
constexpr std::byte keyed_flag{4};
constexpr std::byte flags_mask{15};
/// Kinds of memory have four bits, in which this stands for `memory_kind::other`.
constexpr unsigned other_memory = 15;

std::byte memory_bits(memory_kind memory) noexcept {
  if (memory == memory_kind::cuda_pinned) memory = memory_kind::host;  // as it is to peers
  const unsigned value = std::min(static_cast<unsigned>(memory), other_memory);
  return static_cast<std::byte>(value << 4U);
}

/// A kind that only a later version knows is another one here.
memory_kind memory_of(std::byte flags) noexcept {
  const unsigned value = static_cast<unsigned>(flags) >> 4U;
  return value <= static_cast<unsigned>(memory_kind::rocm) ? static_cast<memory_kind>(value)
                                                           : memory_kind::other;
}

std::byte flag_of(const parcel& said) noexcept {
  if (said.acknowledge) return acknowledge_flag;
  if (said.lends) return lends_flag;
  return said.keyed ? keyed_flag : std::byte{0};
}

bool is_flag(std::byte flags) noexcept {
  return flags == std::byte{0} || flags == acknowledge_flag || flags == lends_flag ||
         flags == keyed_flag;
}

/// Returns whether an offer of so many bytes may follow the user's header.
bool is_offer(const parcel& said, std::size_t size) noexcept {
  if (said.lends) return size == cma_offer::size;
  if (said.keyed) return size > rma_offer::head && size <= rma_offer::head + rma_offer::most_key;
  return size == 0;
}

bool carries_header(parcel_code code) noexcept {
  return code == parcel_code::message || code == parcel_code::announce;
}

bool carries_status(parcel_code code) noexcept {
  return code == parcel_code::refusal || code == parcel_code::withdrawal;
}

bool is_change(std::uint64_t value) noexcept {
  return value >= static_cast<std::uint64_t>(loan_change::more) &&
         value <= static_cast<std::uint64_t>(loan_change::want);
}

bool is_kind(unsigned value) noexcept {
  return value <= static_cast<unsigned>(message_kind::stream);
}

}  // namespace

void parcel::encode(std::span<std::byte, size> into) const noexcept {
  into[0] = std::byte{protocol_version_number};
  into[1] = static_cast<std::byte>(code);
  into[2] = static_cast<std::byte>(kind);
  into[3] = flag_of(*this);
  if (carries_header(code)) into[3] |= memory_bits(memory);
  put_at(into, 4, carries_status(code) ? status : header_length);
  put_at(into, 6, credit);
  put_at(into, 8, session);
  put_at(into, 16, number);
  put_at(into, 24, tag);
  put_at(into, 32, length);
}

std::optional<read_parcel> decode_parcel(std::span<const std::byte> wire,
                                         std::size_t payload) noexcept {
  if (wire.size() < parcel::size || wire[0] != std::byte{protocol_version_number}) return {};
  const auto code = static_cast<std::uint8_t>(wire[1]);
  const auto kind = static_cast<std::uint8_t>(wire[2]);
  const std::byte flags = wire[3] & flags_mask;
  if (code < static_cast<std::uint8_t>(parcel_code::message) ||
      code > static_cast<std::uint8_t>(parcel_code::loan) || !is_kind(kind) || !is_flag(flags)) {
    return {};
  }
  read_parcel read;
  parcel& said = read.said;
  said.code = static_cast<parcel_code>(code);
  said.kind = static_cast<message_kind>(kind);
  said.acknowledge = flags == acknowledge_flag;
  said.lends = flags == lends_flag;
  said.keyed = flags == keyed_flag;
  said.memory = memory_of(wire[3]);
  if (!carries_header(said.code) && flags != wire[3]) return {};
  (carries_status(said.code) ? said.status : said.header_length) = take_at<std::uint16_t>(wire, 4);
  said.credit = take_at<std::uint16_t>(wire, 6);
  said.session = take_at<std::uint64_t>(wire, 8);
  said.number = take_at<std::uint64_t>(wire, 16);
  said.tag = take_at<std::uint64_t>(wire, 24);
  said.length = take_at<std::uint64_t>(wire, 32);
  if (said.code == parcel_code::loan && !is_change(said.tag)) return {};
  read.header = wire.subspan(parcel::size);
  const std::size_t header = carries_header(said.code) ? said.header_length : 0;
  if (header > std::min(read.header.size(), parcel::longest_user_header)) return {};
  const std::size_t offer = read.header.size() - header;
  if (!is_offer(said, offer)) return {};
  if (said.acknowledge && said.code != parcel_code::message) return {};
  if ((said.lends || said.keyed) && said.code != parcel_code::announce) return {};
  read.offer = read.header.last(offer);
  read.header = read.header.first(header);
  switch (said.code) {
    case parcel_code::message:
      if (said.length != payload) return {};
      break;
    case parcel_code::piece:
      if (payload == 0 || said.length > ~std::uint64_t{0} - payload) return {};
      break;
    default:
      if (payload != 0) return {};
      break;
  }
  return read;
}

}  // namespace ucx::detail
