#include "cuda/device_copiers.hpp"

#include <chrono>
#include <utility>

namespace ucx::detail {
namespace {

/// How long copies that run may keep a worker from going.
constexpr std::chrono::seconds longest_last_copy{2};

}  // namespace

device_copiers::~device_copiers() {
  const auto until = std::chrono::steady_clock::now() + longest_last_copy;
  for (const auto& [context, each] : known_) each->close(until);
}

void device_copiers::drop_borrowed() noexcept {
  const auto until = std::chrono::steady_clock::now() + longest_last_copy;
  std::erase_if(known_, [until](const auto& each) {
    if (each.second->context()->is_retained()) return false;
    each.second->close(until);
    return true;
  });
}

result<std::shared_ptr<device_copier>> device_copiers::of(const void* address) {
  const auto owner = cuda_context::owner_of(address);
  if (!owner) return owner.why();
  const auto found = known_.find(owner->context);  // which takes nothing but the question
  if (found != known_.end() && !found->second->failed()) return found->second;
  auto context = cuda_context::of_owner(*owner);
  if (!context) return context.why();
  return in(*std::move(context));
}

result<std::shared_ptr<device_copier>> device_copiers::in(
    std::shared_ptr<const cuda_context> context) {
  const cuda::context handle = context->handle();
  if (const auto found = known_.find(handle); found != known_.end()) {
    // Another context may have got the address of one that is over.
    if (!found->second->failed()) return found->second;
    known_.erase(found);  // others may still wait for it
  }
  auto made = device_copier::make(std::move(context));
  if (made) known_.emplace(handle, *made);
  return made;
}

std::shared_ptr<device_copier> device_copiers::of_device_in_use(int device) {
  const cuda_driver* const driver = cuda_driver::find();
  int devices = 0;
  if (driver == nullptr || driver->device_get_count(&devices) != cuda::success) return nullptr;
  const auto try_one = [&](int number) -> std::shared_ptr<device_copier> {
    std::shared_ptr<const cuda_context> context = cuda_context::primary_in_use(number);
    if (!context) return nullptr;
    auto found = in(std::move(context));
    return found ? *std::move(found) : nullptr;
  };
  if (device >= 0 && device < devices) {
    if (std::shared_ptr<device_copier> found = try_one(device)) return found;
  }
  for (int each = 0; each < devices; ++each) {
    std::shared_ptr<device_copier> found = each == device ? nullptr : try_one(each);
    if (found) return found;
  }
  return nullptr;
}

}  // namespace ucx::detail
