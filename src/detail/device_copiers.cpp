#include "detail/device_copiers.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace ucx::detail {
namespace {

/// How long copies that run may keep a worker from going.
constexpr std::chrono::seconds longest_farewell{2};

}  // namespace

device_copiers::~device_copiers() {
  const auto until = std::chrono::steady_clock::now() + longest_farewell;
  for (const auto& [context, each] : known_) each->close(until);
}

std::shared_ptr<device_copier> device_copiers::of(const void* address, std::error_code& ec) {
  std::string what;
  std::shared_ptr<const cuda_context> context = cuda_context::of_address(address, what, ec);
  if (ec) return nullptr;
  const cuda::context handle = context->handle();
  if (const auto found = known_.find(handle); found != known_.end()) {
    // Another context may have got the address of one that is over.
    if (!found->second->failed()) return found->second;
    known_.erase(found);  // others may still wait for it
  }
  std::shared_ptr<device_copier> made = device_copier::make(std::move(context), what, ec);
  if (made) known_.emplace(handle, made);
  return made;
}

}  // namespace ucx::detail
