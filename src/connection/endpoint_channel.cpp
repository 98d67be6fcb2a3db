#include "connection/endpoint_channel.hpp"

#include <memory>

#include "connection/endpoint_core.hpp"
#include "wire/control_message.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Answers of this side that a peer has not taken, where it goes on asking.
constexpr std::size_t most_refusals_unsent = std::size_t{1} << 20U;

}  // namespace

bool has_no_answer(const control_header& said) noexcept {
  return said.type == control_type::release || said.type == control_type::bye;
}

void endpoint_channel::send(std::span<const std::byte> message) {
  endpoint_.control().send(message);
}

std::size_t endpoint_channel::longest() const noexcept { return endpoint_.control().longest(); }

std::size_t endpoint_channel::unsent() const noexcept { return endpoint_.control().unsent(); }

void endpoint_channel::blame(std::error_code why, const std::string& words) {
  // Later: the caller stands inside what ends with the channel.
  endpoint_.worker().defer([weak = endpoint_.weak_from_this(), why, words] {
    if (const std::shared_ptr<endpoint_core> endpoint = weak.lock()) endpoint->fail(why, words);
  });
}

bool endpoint_channel::refuse(const control_header& said) {
  if (has_no_answer(said) || unsent() > most_refusals_unsent) return false;
  control_header answer = answer_to(said, control_type::done);
  answer.status = error_status(errc::busy);
  send(encode_control(answer));
  return true;
}

}  // namespace ucx::detail
