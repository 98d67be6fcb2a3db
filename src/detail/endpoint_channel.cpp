#include "detail/endpoint_channel.hpp"

#include <algorithm>
#include <memory>

#include "detail/endpoint_core.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

void endpoint_channel::send(std::span<const std::byte> message) { endpoint_.send_control(message); }

std::size_t endpoint_channel::longest() const noexcept {
  return std::min(most, endpoint_.pieces().answer);
}

std::size_t endpoint_channel::unsent() const noexcept { return endpoint_.unsent_control(); }

void endpoint_channel::blame(std::error_code why, const std::string& words) {
  // Later: whoever blames stands inside what ends with the channel.
  endpoint_.worker().defer([weak = endpoint_.weak_from_this(), why, words] {
    if (const std::shared_ptr<endpoint_core> endpoint = weak.lock()) endpoint->fail(why, words);
  });
}

}  // namespace ucx::detail
