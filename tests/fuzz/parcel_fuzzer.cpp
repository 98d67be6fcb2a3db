#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "ucp/packed_key.hpp"
#include "wire/brief_parcel.hpp"
#include "wire/cma_offer.hpp"
#include "wire/parcel.hpp"
#include "wire/parts_table.hpp"
#include "wire/rma_offer.hpp"

namespace {

/// A key is read within its bytes, and the message does not wrap around.
void read_rma_offer(std::span<const std::byte> wire, std::uint64_t length) {
  const auto offer = ucx::detail::decode_rma_offer(wire, length);
  if (!offer) return;
  if (offer->address + length < offer->address) std::abort();
  std::vector<std::byte> same(offer->size());
  offer->encode(same);
  if (!std::equal(same.begin(), same.end(), wire.begin(), wire.end())) std::abort();
  const ucx::detail::padded_key padded(offer->key);
  if (ucx::detail::is_key_of_domains(offer->key) && padded.data() == nullptr) std::abort();
}

/// What was read is written as it was read.
void read_parcel(std::span<const std::byte> wire, std::size_t payload) {
  using ucx::detail::parcel;
  const auto read = ucx::detail::decode_parcel(wire, payload);
  if (!read) return;
  std::vector<std::byte> again(wire.begin(), wire.end());
  read->said.encode(std::span(again).first<parcel::size>());
  const auto twice = ucx::detail::decode_parcel(again, payload);
  if (!twice || twice->said.code != read->said.code || twice->said.number != read->said.number ||
      twice->said.length != read->said.length || twice->header.size() != read->header.size()) {
    std::abort();
  }
  if (const auto offer = ucx::detail::decode_offer(read->offer)) {
    std::vector<std::byte> same(ucx::detail::cma_offer::size);
    offer->encode(std::span(same).first<ucx::detail::cma_offer::size>());
    if (!std::equal(same.begin(), same.end(), read->offer.begin(), read->offer.end())) std::abort();
  }
  read_rma_offer(read->offer, read->said.length);
}

void read_brief_parcel(std::span<const std::byte> wire) {
  using ucx::detail::brief_parcel;
  const auto read = ucx::detail::decode_brief_parcel(wire);
  if (!read) return;
  std::vector<std::byte> again(brief_parcel::longest);
  again.resize(read->said.encode(std::span(again).first<brief_parcel::longest>()));
  again.insert(again.end(), read->header.begin(), read->header.end());
  const auto twice = ucx::detail::decode_brief_parcel(again);
  if (!twice || twice->said.kind != read->said.kind || twice->said.number != read->said.number ||
      twice->said.tag != read->said.tag || twice->header.size() != read->header.size()) {
    std::abort();
  }
}

/// Parts lie behind each other up to the end, or there are none.
void read_parts(std::span<const std::byte> wire) {
  std::vector<std::byte> message(wire.begin(), wire.end());
  const auto parts = ucx::detail::decode_parts(message);
  if (!parts) return;
  std::vector<std::span<const std::byte>> sent(parts->begin(), parts->end());
  std::vector<std::byte> again;
  ucx::detail::encode_parts_table(sent, again);
  for (const std::span<const std::byte>& each : sent) {
    again.insert(again.end(), each.begin(), each.end());
  }
  if (again != message) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> wire(reinterpret_cast<const std::byte*>(data), size);
  read_parts(wire);
  read_brief_parcel(wire);
  read_parcel(wire, 0);
  // A length of a payload that fits, so that messages and pieces are read too.
  if (size >= ucx::detail::parcel::size) read_parcel(wire, std::to_integer<std::size_t>(wire[32]));
  return 0;
}
