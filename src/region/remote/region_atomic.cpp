#include "region/remote/region_atomic.hpp"

#include <cstring>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "region/remote/remote_region_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void store_number(std::uint64_t number, std::span<std::byte> into) noexcept {
  if (into.size() == sizeof(std::uint32_t)) {
    const auto narrow = static_cast<std::uint32_t>(number);
    std::memcpy(into.data(), &narrow, sizeof narrow);
  } else if (into.size() == sizeof number) {
    std::memcpy(into.data(), &number, sizeof number);
  }
}

void region_atomic::begin(std::shared_ptr<remote_region_core> region, std::uint64_t offset,
                          const atomic_access& wanted, std::span<std::byte> previous,
                          clock::time_point deadline) {
  previous_ = previous;
  payload_ = encode(wanted, !previous.empty());
  enter(std::move(region), offset, wanted.width, deadline);
}

void region_atomic::ask() {
  frame asked = question(opcode::atomic);
  asked.offset = offset_;
  asked.length = length_;
  send_question(asked, payload_);
}

void region_atomic::answered(const frame& answer, std::span<const std::byte>) {
  if (answer.code != opcode::performed) {
    return blame_peer("an atomic access was answered by another frame");
  }
  if (answer.status == 0) store_number(answer.offset, previous_);
  leave();
  complete(status_error(answer.status));
}

void region_atomic::give_up_for(std::error_code why) noexcept {
  if (done()) return;
  leave();
  complete(why);
}

void region_atomic::recycle() noexcept {
  region_.reset();
  worker().pool_of<region_atomic>().give_back(this);
}

}  // namespace ucx::detail
