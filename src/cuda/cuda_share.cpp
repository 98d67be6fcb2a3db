#include "cuda/cuda_share.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "cuda/device_copier.hpp"
#include "os/open_descriptors.hpp"
#include "wire/cuda_fd_table.hpp"

namespace ucx::detail {
namespace {

/// One part of this many of the descriptors that are left may go to one region.
constexpr std::size_t share_of_descriptors = 8;

/// The driver's answers about memory. Older drivers have none.
struct sharing_facts {
  unsigned has_ipc_handle = 1;
  std::uint64_t handle_types = 0;
  cuda::pool pool = nullptr;
};

sharing_facts facts_of(const cuda_driver& driver, cuda::address first) noexcept {
  sharing_facts found{.has_ipc_handle = 0};
  std::array<int, 3> attributes{cuda::attribute_has_ipc_handle, cuda::attribute_handle_types,
                                cuda::attribute_pool};
  std::array<void*, 3> values{&found.has_ipc_handle, &found.handle_types, &found.pool};
  const cuda::result said = driver.pointer_attributes(static_cast<unsigned>(attributes.size()),
                                                      attributes.data(), values.data(), first);
  return said == cuda::success ? found : sharing_facts();
}

/// Returns what a peer checks the descriptor by. It is closed on exec: a program that is started
/// would keep the memory.
bool is_named(int file, cuda_fd_table::part& into) noexcept {
  struct ::stat found = {};
  if (::fcntl(file, F_SETFD, FD_CLOEXEC) != 0 || ::fstat(file, &found) != 0) return false;
  into.descriptor = static_cast<std::uint64_t>(file);
  into.device = found.st_dev;
  into.inode = found.st_ino;
  return true;
}

}  // namespace

cuda_share cuda_share::of(const cuda_context& context, std::span<const std::byte> bytes) {
  cuda_share made;
  const current_context current(context);
  if (current.result() == cuda::success) {
    made.share(context.driver(), bytes);
  } else {
    made.failed(context.driver(), "cuCtxPushCurrent", current.result());
  }
  if (made.handle_.size == 0) {
    made.files_.clear();
    made.table_.clear();
  }
  return made;
}

void cuda_share::share(const cuda_driver& driver, std::span<const std::byte> bytes) {
  const cuda::address first = address_of(bytes.data());
  const sharing_facts facts = facts_of(driver, first);
  if (facts.has_ipc_handle == 0 && (facts.handle_types & cuda::handle_type_descriptor) != 0) {
    if (facts.pool != nullptr) {
      share_pool(driver, facts.pool, first, bytes.size());
    } else {
      share_allocations(driver, first, bytes.size());
    }
    return;
  }
  share_handle(driver, first, bytes.size());
  if (handle_.size != 0 || facts.has_ipc_handle != 0) return;
  handle_.by_descriptors = true;  // peers say so, too
  why_not_ =
      "memory of a driver's pool (cudaMallocAsync) or of cuMemMap is shared if it was made with "
      "CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, and this was not";
}

bool cuda_share::failed(const cuda_driver& driver, const char* call, cuda::result said) {
  why_not_ = cuda_words(driver, call, said);
  return false;
}

bool cuda_share::failed(const char* why) {
  why_not_ = why;
  return false;
}

void cuda_share::share_handle(const cuda_driver& driver, cuda::address first, std::size_t size) {
  if (!driver.shares_memory()) {
    failed("the driver shares no memory");
    return;
  }
  cuda::address begin = 0;
  std::size_t whole = 0;
  std::array<int, 2> attributes{cuda::attribute_range_start, cuda::attribute_range_size};
  std::array<void*, 2> values{&begin, &whole};
  cuda::result said = driver.pointer_attributes(2, attributes.data(), values.data(), first);
  if (said != cuda::success) {
    failed(driver, "cuPointerGetAttributes", said);
    return;
  }
  if (first - begin > whole || size > whole - (first - begin)) {
    failed("the driver knows of no allocation that has all of it");
    return;
  }
  cuda::memory_handle made;
  said = driver.share(&made, begin);
  if (said != cuda::success) {
    failed(driver, "cuIpcGetMemHandle", said);
    return;
  }
  handle_ = {.bytes = made.bytes, .size = whole, .offset = first - begin};
}

/// A mapping begins with its allocation: `cuMemMap` takes no other offset than 0. A descriptor
/// keeps the allocation, so that no handle needs to.
bool cuda_share::share_allocations(const cuda_driver& driver, cuda::address first,
                                   std::size_t size) {
  if (!driver.shares_allocations()) return failed("the driver shares no memory of cuMemMap");
  const std::size_t most =
      std::min(cuda_fd_table::most_parts, count_descriptors().left() / share_of_descriptors);
  cuda_fd_table table;
  cuda::address offset = 0;
  for (cuda::address at = first; at - first < size;) {
    if (table.parts.size() == most) {
      return failed("it has too many parts for the descriptors that are left (ulimit -n)");
    }
    files_.emplace_back();
    cuda_fd_table::part& part = table.parts.emplace_back();
    cuda::address begin = 0;
    std::size_t length = 0;
    cuda::result said = driver.address_range(&begin, &length, at);
    if (said != cuda::success) return failed(driver, "cuMemGetAddressRange", said);
    if (begin > at || at - begin >= length) return failed("the driver contradicts itself");
    cuda::allocation retained = 0;
    void* const pointer = reinterpret_cast<void*>(static_cast<std::uintptr_t>(at));
    said = driver.retain_allocation(&retained, pointer);
    if (said != cuda::success) return failed(driver, "cuMemRetainAllocationHandle", said);
    int file = -1;
    said = driver.export_allocation(&file, retained, cuda::handle_type_descriptor, 0);
    driver.release_allocation(retained);
    if (said != cuda::success) return failed(driver, "cuMemExportToShareableHandle", said);
    files_.back() = owned_descriptor(file);
    if (!is_named(file, part)) return failed("the system does not know the driver's descriptor");
    part.size = length;
    if (at == first) offset = at - begin;
    at = begin + length;
  }
  table_ = table.encode();
  const cuda_fd_location where{address_of(table_.data()), table_.size()};
  handle_ = {where.encode(), table.size(), offset, true};
  return true;
}

bool cuda_share::share_pool(const cuda_driver& driver, cuda::pool pool, cuda::address first,
                            std::size_t size) {
  if (!driver.shares_pools()) return failed("the driver shares no memory of pools");
  cuda_fd_table table;
  cuda_fd_table::part& part = table.parts.emplace_back();
  files_.emplace_back();
  cuda::address begin = 0;
  std::size_t length = 0;
  cuda::result said = driver.address_range(&begin, &length, first);
  if (said != cuda::success) return failed(driver, "cuMemGetAddressRange", said);
  if (begin > first || first - begin > length || size > length - (first - begin)) {
    return failed("the driver knows of no allocation that has all of it");
  }
  int file = -1;
  said = driver.export_pool(&file, pool, cuda::handle_type_descriptor, 0);
  if (said != cuda::success) return failed(driver, "cuMemPoolExportToShareableHandle", said);
  files_.back() = owned_descriptor(file);
  if (!is_named(file, part)) return failed("the system does not know the driver's descriptor");
  cuda::pool_pointer pointer;
  said = driver.export_pool_pointer(&pointer, begin);
  if (said != cuda::success) return failed(driver, "cuMemPoolExportPointer", said);
  part.size = length;
  table.pointer = pointer.bytes;
  table_ = table.encode();
  const cuda_fd_location where{address_of(table_.data()), table_.size()};
  handle_ = {where.encode(), length, first - begin, true};
  return true;
}

}  // namespace ucx::detail
