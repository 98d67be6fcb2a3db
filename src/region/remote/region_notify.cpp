#include "region/remote/region_notify.hpp"

#include <utility>

#include "connection/endpoint_core.hpp"
#include "region/remote/remote_region_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void region_notify::begin(std::shared_ptr<remote_region_core> region, std::uint64_t value,
                          clock::time_point deadline) {
  value_ = value;
  enter(std::move(region), 0, 0, deadline);
}

void region_notify::ask() {
  frame asked = question(opcode::notify);
  asked.offset = value_;
  send_question(asked);
}

void region_notify::answered(const frame& answer, std::span<const std::byte>) {
  if (answer.code != opcode::notified) {
    return blame_peer("a notification was answered by another frame");
  }
  leave();
  complete(status_error(answer.status));
}

void region_notify::give_up_for(std::error_code why) noexcept {
  if (done()) return;
  leave();
  complete(why);
}

std::string region_notify::describe() const {
  return "notification " + std::to_string(value_) + " of the owner of " + region_->description();
}

void region_notify::recycle() noexcept {
  region_.reset();
  worker().pool_of<region_notify>().give_back(this);
}

}  // namespace ucx::detail
