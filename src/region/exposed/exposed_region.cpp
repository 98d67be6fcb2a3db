#include "region/exposed/exposed_region.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "region/exposed/notification_queue.hpp"
#include "ucx/error.hpp"
#include "wire/host_identity.hpp"
#include "worker/context_core.hpp"

namespace ucx::detail {
namespace {

constexpr std::chrono::seconds longest_memcpy{5};

}  // namespace

exposed_region::exposed_region(std::shared_ptr<context_core> context, access granted)
    : exposed_region(context->regions().next_number(), context, granted) {}

exposed_region::exposed_region(const region_number& number, std::shared_ptr<context_core> context,
                               access granted)
    : counted_region(number.id),
      generation_(number.generation),
      context_(std::move(context)),
      granted_(granted),
      notifications_(std::make_shared<notification_queue>()) {}

exposed_region::~exposed_region() = default;

remote_descriptor exposed_region::describe() const {
  remote_descriptor made;
  made.region = id();
  made.incarnation = context_->incarnation();
  made.generation = generation();
  made.size = size();
  made.granted = granted_;
  made.kind = kind();
  made.device = memory().device;
  made.host = host_identity();
  return made;
}

std::error_code exposed_region::check(std::uint64_t offset, std::uint64_t length,
                                      access wanted) const noexcept {
  if (!includes(granted_, wanted)) return errc::permission_denied;
  const std::uint64_t end = includes(wanted, access::write) ? writable_size() : size();
  if (offset > end || length > end - offset) {
    return end > size() ? errc::no_space : errc::out_of_range;
  }
  return {};
}

void exposed_region::expose() {
  context_->regions().add(*this, generation_);
  exposed_ = true;
}

void exposed_region::close(clock::time_point until) noexcept {
  withdraw(until);
  const std::lock_guard guard(releasing_);
  release();
}

void exposed_region::withdraw(clock::time_point cut_off) noexcept {
  if (!exposed_) return;
  // Every caller drains, also the second one: each returns when the region is idle.
  context_->regions().remove(*this, generation_);
  // Draining repeats, because UCX lets go of what it reads only while it progresses. A write that
  // another thread's worker is copying in takes no longer than a memcpy. An access that never ends
  // would be a bug. The bound keeps it from hanging the owner.
  const clock::time_point until = clock::now() + longest_memcpy;
  while (!idle() && clock::now() < until) {
    context_->workers().drain(*this, cut_off);
    if (!idle()) std::this_thread::yield();
  }
  notifications_->close();
}

}  // namespace ucx::detail
