#include "fake_device.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <optional>

#include "fake_pages.hpp"
#include "fake_results.hpp"

namespace ucx::test {
namespace {

bool includes(const fake_memory& memory, std::uint64_t address, std::size_t size) {
  return address >= memory.address && size <= memory.size &&
         address - memory.address <= memory.size - size;
}

}  // namespace

int fake_cuda::allocate(fake_kind kind, std::size_t size, std::uint64_t* made) {
  const std::lock_guard guard(mutex_);
  CUctx_st* const owner = current();
  if (owner == nullptr) return initialised_ ? invalid_context : not_initialized;
  if (size == 0) return invalid_value;
  if (size > fake_cuda_device_size - taken_on(owner->device)) return out_of_memory;
  fake_memory memory{kind, 0, size, owner};
  // From the system, and never given back: bytes that are freed too early are seen as such.
  void* const bytes = ::mmap(nullptr, whole_pages(size), PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bytes == MAP_FAILED) return out_of_memory;
  memory.bytes = static_cast<std::byte*>(bytes);
  memory.address =
      kind == fake_kind::device ? reserve(size) : reinterpret_cast<std::uintptr_t>(bytes);
  if (memory.address == 0) return out_of_memory;
  memory.number = ++last_number_;
  // What nobody wrote is not zero.
  if (kind == fake_kind::device) std::memset(memory.bytes, 0xA5, size);
  memory_[memory.address] = memory;
  *made = memory.address;
  return success;
}

std::size_t fake_cuda::taken_on(int device) {
  std::size_t taken = 0;
  for (const auto& [address, each] : memory_) {
    const bool of_context = each.kind == fake_kind::device || each.kind == fake_kind::managed;
    if (of_context && each.context->device == device) taken += each.size;
    if (each.kind == fake_kind::pooled && each.device == device) taken += each.size;
  }
  for (const auto& [handle, each] : allocations_) taken += each.device == device ? each.size : 0;
  return taken;
}

int fake_cuda::free(std::uint64_t address, bool pinned) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const auto found = memory_.find(address);
  if (found == memory_.end()) return invalid_value;
  if ((found->second.kind == fake_kind::pinned) != pinned) return invalid_value;
  if (found->second.registered || found->second.kind == fake_kind::opened ||
      found->second.kind == fake_kind::mapped) {
    return invalid_value;
  }
  retire(found->second);
  memory_.erase(found);
  return success;
}

int fake_cuda::enlist(void* memory, std::size_t size) {
  const std::lock_guard guard(mutex_);
  CUctx_st* const owner = current();
  if (owner == nullptr) return invalid_context;
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(memory);
  if (holder(address) != nullptr || holder(address + size - 1) != nullptr) {
    return already_registered;
  }
  memory_[address] = {
      fake_kind::pinned, address, size, owner, static_cast<std::byte*>(memory), true};
  return success;
}

int fake_cuda::strike_off(void* memory) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const auto found = memory_.find(reinterpret_cast<std::uintptr_t>(memory));
  if (found == memory_.end() || !found->second.registered) return invalid_value;
  memory_.erase(found);
  return success;
}

int fake_cuda::seen_by_device(void* memory, std::uint64_t* seen) {
  const std::lock_guard guard(mutex_);
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(memory);
  const fake_memory* const found = holder(address);
  if (current() == nullptr) return invalid_context;
  if (found == nullptr || found->kind != fake_kind::pinned) return invalid_value;
  if (found->context != current()) return invalid_value;
  *seen = address + seen_from;
  return success;
}

/// The pages of the system go, the addresses stay taken.
void fake_cuda::retire(const fake_memory& memory) {
  if (memory.registered) return;
  ::madvise(memory.bytes, whole_pages(memory.size), MADV_DONTNEED);
  ::mprotect(memory.bytes, whole_pages(memory.size), PROT_NONE);
  if (memory.file >= 0) ::close(memory.file);
  gone_[memory.address] = memory.size;
}

bool fake_cuda::is_gone(std::uint64_t address) const {
  const auto after = gone_.upper_bound(address);
  return after != gone_.begin() && address - std::prev(after)->first < std::prev(after)->second;
}

fake_memory* fake_cuda::holder(std::uint64_t address) {
  auto after = memory_.upper_bound(address);
  if (after == memory_.begin()) return nullptr;
  fake_memory& before = std::prev(after)->second;
  return includes(before, address, 1) ? &before : nullptr;
}

void fake_cuda::reallocate(std::uint64_t address) {
  const std::lock_guard guard(mutex_);
  fake_memory& again = memory_.at(address);
  again.number = ++last_number_;
  std::memset(again.bytes, 0xA5, again.size);
}

void fake_cuda::refuse_unknown(bool refuse) {
  const std::lock_guard guard(mutex_);
  refuses_unknown_ = refuse;
}

bool fake_cuda::refuses_unknown() {
  const std::lock_guard guard(mutex_);
  return refuses_unknown_;
}

std::optional<fake_memory> fake_cuda::find(std::uint64_t address) {
  const std::lock_guard guard(mutex_);
  const fake_memory* const found = holder(address);
  return found != nullptr ? std::optional(*found) : std::nullopt;
}

/// Returns the bytes at `address`: of the host, if no allocation has them.
std::byte* fake_cuda::reach(std::uint64_t address, std::size_t size, int by, unsigned needed,
                            bool* on_device, int* result) {
  *on_device = false;
  const fake_memory* const found = holder(address);
  if (found == nullptr) {
    if (is_gone(address) || reservation_of(address) != nullptr) *result = invalid_value;
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(address));
  }
  const bool there = found->kind == fake_kind::mapped || includes(*found, address, size);
  if (!there || !may_access(address, size, by, needed)) *result = invalid_value;
  *on_device = found->kind != fake_kind::pinned;
  return found->bytes + (address - found->address);
}

int fake_cuda::check(const fake_copy& wanted) {
  int result = success;
  bool on_device = false;
  reach(wanted.into, wanted.size, wanted.device, access_both, &on_device, &result);
  if (!wanted.fill) {
    reach(wanted.from, wanted.size, wanted.device, access_read, &on_device, &result);
  }
  return result;
}

int fake_cuda::run(const fake_copy& wanted) {
  if (const int failure = enter_locked("copy")) return failure;
  int result = success;
  bool into_device = false;
  bool from_device = false;
  std::byte* const into =
      reach(wanted.into, wanted.size, wanted.device, access_both, &into_device, &result);
  if (result != success) return illegal_address;
  if (wanted.fill) {
    if (wanted.size > 0) std::memset(into, *wanted.fill, wanted.size);
    return success;
  }
  const std::byte* const from =
      reach(wanted.from, wanted.size, wanted.device, access_read, &from_device, &result);
  if (result != success) return illegal_address;
  if (wanted.size > 0) std::memcpy(into, from, wanted.size);
  const auto direction = into_device
                             ? (from_device ? fake_cuda_within_devices : fake_cuda_to_device)
                             : (from_device ? fake_cuda_from_device : fake_cuda_within_host);
  ++copies_[direction];
  bytes_[direction] += wanted.size;
  return success;
}

int fake_cuda::copy_now(const fake_copy& wanted) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  fake_copy by_device = wanted;
  by_device.device = current()->device;
  const int failure = check(by_device);
  return failure != success ? failure : run(by_device);
}

std::size_t fake_cuda::registered() {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const auto& [address, each] : memory_) sum += each.registered ? each.size : 0;
  return sum;
}

std::size_t fake_cuda::allocated() {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const auto& [address, each] : memory_) {
    const bool of_others = each.kind == fake_kind::opened || each.kind == fake_kind::imported;
    sum += each.registered || of_others || each.kind == fake_kind::mapped ? 0 : each.size;
  }
  return sum;
}

}  // namespace ucx::test
