#include "wire/cma_offer.hpp"

#include <limits>

#include "wire/wire.hpp"

namespace ucx::detail {

void cma_offer::encode(std::span<std::byte, size> into) const noexcept {
  put_at(into, 0, process);
  put_at(into, 8, address);
  put_at(into, 16, record);
  put_at(into, 24, token);
}

std::optional<cma_offer> decode_offer(std::span<const std::byte> wire) noexcept {
  if (wire.size() != cma_offer::size) return {};
  cma_offer read;
  read.process = take_at<std::uint64_t>(wire, 0);
  read.address = take_at<std::uint64_t>(wire, 8);
  read.record = take_at<std::uint64_t>(wire, 16);
  read.token = take_at<std::uint64_t>(wire, 24);
  const bool is_process =
      read.process > 0 && read.process <= std::uint64_t{std::numeric_limits<std::int32_t>::max()};
  if (!is_process || read.token == 0) return {};
  return read;
}

}  // namespace ucx::detail
