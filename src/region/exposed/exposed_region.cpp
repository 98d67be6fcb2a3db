#include "region/exposed/exposed_region.hpp"

#include <xxhash.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "region/exposed/notification_queue.hpp"
#include "ucx/error.hpp"
#include "worker/context_core.hpp"

namespace ucx::detail {
namespace {

constexpr std::chrono::seconds longest_memcpy{5};

std::string read_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

}  // namespace

std::array<std::byte, 16> host_identity() noexcept {
  static const std::array<std::byte, 16> identity = [] {
    std::array<std::byte, 16> made = {};
    try {
      // The boot id is the kernel's, and containers of one kernel share it. They share memory only
      // if they share a name space for it, which an attempt to use the memory finds out.
      const std::string boot = read_line("/proc/sys/kernel/random/boot_id");
      const XXH128_hash_t hash = XXH3_128bits(boot.data(), boot.size());
      XXH128_canonical_t canonical;
      XXH128_canonicalFromHash(&canonical, hash);
      std::memcpy(made.data(), &canonical, made.size());
    } catch (...) {  // out of memory: an identity that equals no other
    }
    return made;
  }();
  return identity;
}

exposed_region::exposed_region(std::shared_ptr<context_core> context, access granted)
    : counted_region(context->regions().next_id()),
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
  context_->regions().add(*this);
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
  context_->regions().remove(*this);
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
