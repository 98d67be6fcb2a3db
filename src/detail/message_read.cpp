#include "detail/message_read.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "detail/device_pointer.hpp"
#include "detail/digest.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/operation_pools.hpp"
#include "detail/remote_region_core.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {

void message_read::begin(std::shared_ptr<remote_region_core> region, std::uint64_t offset,
                         std::span<std::byte> into, clock::time_point deadline, bool verify) {
  into_ = into;
  received_ = 0;
  verify_ = verify;
  unsealed_ = false;
  attempts_ = 0;
  damaged_ = {};
  enter(std::move(region), offset, into.size(), deadline);
}

void message_read::ask() {
  frame asked = question(opcode::read);
  asked.offset = offset_;
  asked.length = length_;
  if (verify_) asked.status = frame::with_digests;
  ++attempts_;
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
  if (!copier_) {
    std::memcpy(into_.data() + answer.offset, payload.data(), payload.size());
  } else if (const std::error_code ec =
                 copier_->copy_in(into_.data() + answer.offset, payload.data(), payload.size())) {
    return give_up_for(ec);
  }
  received_ += payload.size();
  if (verify_) check(answer);
  if (received_ == into_.size()) arrived();
}

/// What counts is what the caller gets: the copy is checked, too.
void message_read::check(const frame& answer) {
  const std::span<std::byte> piece = into_.subspan(static_cast<std::size_t>(answer.offset),
                                                   static_cast<std::size_t>(answer.length));
  frame asked = question(opcode::read);
  asked.offset = offset_;
  const seal_state state = check_seal(answer, asked, piece);
  if (state == seal_state::none) unsealed_ = true;
  if (state == seal_state::damaged && damaged_.length == 0)
    damaged_ = {answer.offset, piece.size()};
}

void message_read::arrived() {
  const bool damaged = damaged_.length > 0;
  if (damaged && !unsealed_ && attempts_ < most_attempts) {
    received_ = 0;
    damaged_ = {};
    return ask();
  }
  leave();
  if (unsealed_) return complete(errc::not_supported);
  complete(damaged ? make_error_code(errc::damaged_on_the_way) : std::error_code());
}

std::string message_read::describe() const {
  std::string text = "read of " + message_operation::describe();
  if (!done()) return text;  // what follows is still being written
  if (unsealed_) text += ", whose owner is of a version that sends no checksums";
  if (damaged_.length == 0) return text;
  const std::uint64_t begin = offset_ + damaged_.offset;
  return text + ", of which those from " + std::to_string(begin) + " to " +
         std::to_string(begin + damaged_.length - 1) + " arrived damaged";
}

void message_read::give_up_for(std::error_code why) noexcept {
  if (done()) return;
  leave();
  complete(why);
}

bool message_read::rebind(std::span<std::byte> into) noexcept {
  if (done() || received_ != 0 || into.size() != into_.size()) return false;
  if (copier_ || is_on_device(into.data())) return false;
  into_ = into;
  return true;
}

void message_read::recycle() noexcept {
  copier_.reset();
  region_.reset();
  worker().pools().reads.give_back(this);
}

}  // namespace ucx::detail
