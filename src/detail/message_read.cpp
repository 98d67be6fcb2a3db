#include "detail/message_read.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "detail/endpoint_core.hpp"
#include "detail/operation_pools.hpp"
#include "detail/remote_region_core.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

void message_read::begin(std::shared_ptr<remote_region_core> region, std::uint64_t offset,
                         std::span<std::byte> into, clock::time_point deadline) {
  into_ = into;
  received_ = 0;
  enter(std::move(region), offset, into.size(), deadline);
}

void message_read::ask() {
  frame asked = question(opcode::read);
  asked.offset = offset_;
  asked.length = length_;
  send_question(asked);
}

void message_read::answered(const frame& answer, std::span<const std::byte> payload) {
  if (answer.code != opcode::data) return blame_peer("a read was answered by another frame");
  if (answer.status != 0) {
    leave();
    return complete(status_error(answer.status));
  }
  // Pieces come in any order: UCX promises none between messages.
  if (answer.length != payload.size() || payload.empty() || answer.offset > into_.size() ||
      payload.size() > into_.size() - answer.offset || payload.size() > into_.size() - received_) {
    return blame_peer("a read was answered with other bytes than it asked for");
  }
  std::memcpy(into_.data() + answer.offset, payload.data(), payload.size());
  received_ += payload.size();
  if (received_ < into_.size()) return;
  leave();
  complete({});
}

void message_read::give_up_for(std::error_code why) noexcept {
  if (done()) return;
  leave();
  complete(why);
}

bool message_read::rebind(std::span<std::byte> into) noexcept {
  if (done() || received_ != 0 || into.size() != into_.size()) return false;
  into_ = into;
  return true;
}

void message_read::recycle() noexcept {
  region_.reset();
  worker().pools().reads.give_back(this);
}

}  // namespace ucx::detail
