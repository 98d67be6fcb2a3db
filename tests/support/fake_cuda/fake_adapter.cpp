// What adapters of the network do to memory of devices, past every stream: GPUDirect RDMA.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fake_device.hpp"
#include "fake_results.hpp"

namespace ucx::test {
namespace {

constexpr int scope_of_owner = 100;
constexpr int scope_of_all = 200;

}  // namespace

void fake_cuda::let_adapters_reach(bool reach) {
  const std::lock_guard guard(mutex_);
  in_reach_ = reach;
}

void fake_cuda::order_adapter_writes(int order) {
  const std::lock_guard guard(mutex_);
  adapter_order_ = order;
}

/// Managed memory moves, and what was mapped or is of a pool was not made for adapters.
fake_memory* fake_cuda::in_reach(std::uint64_t address, std::size_t size) {
  fake_memory* const found = holder(address);
  if (!in_reach_ || found == nullptr || found->kind != fake_kind::device) return nullptr;
  return size <= found->size - (address - found->address) ? found : nullptr;
}

bool fake_cuda::do_adapters_reach(std::uint64_t address, std::size_t size) {
  const std::lock_guard guard(mutex_);
  return in_reach(address, size) != nullptr;
}

/// An adapter sees what it wrote itself.
int fake_cuda::read_by_adapter(void* into, std::uint64_t from, std::size_t size) {
  const std::lock_guard guard(mutex_);
  const fake_memory* const found = in_reach(from, size);
  if (found == nullptr) return illegal_address;
  std::memcpy(into, found->bytes + (from - found->address), size);
  for (const fake_arrival& each : arrivals_) {
    const std::uint64_t begin = std::max(from, each.into);
    const std::uint64_t end = std::min(from + size, each.into + each.bytes.size());
    if (begin >= end) continue;
    std::memcpy(static_cast<std::byte*>(into) + (begin - from),
                each.bytes.data() + (begin - each.into), end - begin);
  }
  return success;
}

int fake_cuda::write_by_adapter(std::uint64_t into, const void* from, std::size_t size) {
  const std::lock_guard guard(mutex_);
  if (in_reach(into, size) == nullptr) return illegal_address;
  const auto* const bytes = static_cast<const std::byte*>(from);
  fake_arrival what{into, {bytes, bytes + size}};
  if (adapter_order_ >= order_of_owner) {
    store(what);
  } else {
    arrivals_.push_back(std::move(what));
  }
  return success;
}

int fake_cuda::copy_aside(std::uint64_t device, void* host, std::size_t size, bool into_device) {
  const std::lock_guard guard(mutex_);
  const fake_memory* const found = holder(device);
  if (found == nullptr || size > found->size - (device - found->address)) return illegal_address;
  std::byte* const bytes = found->bytes + (device - found->address);
  std::memcpy(into_device ? bytes : host, into_device ? host : bytes, size);
  return success;
}

/// What was freed meanwhile takes nothing any more.
void fake_cuda::store(const fake_arrival& what) {
  const fake_memory* const found = in_reach(what.into, what.bytes.size());
  if (found == nullptr) return;
  std::memcpy(found->bytes + (what.into - found->address), what.bytes.data(), what.bytes.size());
}

/// Of the current context's device only.
int fake_cuda::flush_adapter_writes(int target, int scope) {
  const std::lock_guard guard(mutex_);
  const CUctx_st* const context = current();
  if (context == nullptr) return initialised_ ? invalid_context : not_initialized;
  if (target != 0 || (scope != scope_of_owner && scope != scope_of_all)) return invalid_value;
  if (!in_reach_) return not_supported;
  std::vector<fake_arrival> others;
  for (fake_arrival& each : arrivals_) {
    const fake_memory* const found = holder(each.into);
    if (found != nullptr && found->context->device != context->device) {
      others.push_back(std::move(each));
    } else {
      store(each);
    }
  }
  arrivals_ = std::move(others);
  return success;
}

}  // namespace ucx::test
