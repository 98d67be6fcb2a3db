#include "wire/rma_offer.hpp"

#include <algorithm>

#include "wire/wire.hpp"

namespace ucx::detail {

void rma_offer::encode(std::span<std::byte> into) const noexcept {
  put_at(into, 0, address);
  put_at(into, 8, static_cast<std::uint16_t>(key.size()));
  std::copy(key.begin(), key.end(), into.begin() + head);
}

std::optional<rma_offer> decode_rma_offer(std::span<const std::byte> wire,
                                          std::uint64_t length) noexcept {
  if (wire.size() <= rma_offer::head || wire.size() > rma_offer::head + rma_offer::most_key) {
    return {};
  }
  rma_offer read;
  read.address = take_at<std::uint64_t>(wire, 0);
  read.key = wire.subspan(rma_offer::head);
  const bool is_run = read.address != 0 && length != 0 && length <= ~read.address;
  if (!is_run || take_at<std::uint16_t>(wire, 8) != read.key.size()) return {};
  return read;
}

}  // namespace ucx::detail
