#include "worker/plane_transfer.hpp"

#include <algorithm>

namespace ucx::detail {
namespace {

constexpr std::size_t address_padding = 1024;
constexpr std::byte end_of_address{0xff};  // the number of no domain and no device

}  // namespace

plane_peer::plane_peer(std::span<const std::byte> address)
    : length_(address.size()), address_(address.begin(), address.end()) {
  address_.resize(length_ + address_padding, end_of_address);
}

bool plane_peer::has(std::span<const std::byte> address) const noexcept {
  return std::equal(address_.begin(), address_.begin() + static_cast<std::ptrdiff_t>(length_),
                    address.begin(), address.end());
}

bool plane_transfer::wait_over(std::chrono::nanoseconds longest) {
  std::unique_lock guard(mutex_);
  return changed_.wait_for(guard, longest, [this] { return over_.load(); });
}

}  // namespace ucx::detail
