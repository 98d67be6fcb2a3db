// Pools of the pretended driver, and how another process gets what was allocated from one. The
// bytes of a pool are a file in memory.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <type_traits>

#include "fake_device.hpp"
#include "fake_pages.hpp"
#include "fake_results.hpp"
#include "fake_virtual.hpp"

namespace ucx::test {
namespace {

constexpr std::size_t pool_size = std::size_t{128} << 20U;

/// What is told of an allocation; the rest is zeros.
struct pool_pointer {
  std::uint64_t mark = 0x6c6f6f706b6166;
  std::uint64_t inode = 0;
  std::uint64_t at = 0;
  std::uint64_t size = 0;
};
static_assert(sizeof(pool_pointer) <= sizeof(fake_cuda_handle));
static_assert(std::is_trivially_copyable_v<pool_pointer>);

std::uint64_t inode_of(int file) {
  struct ::stat found = {};
  return ::fstat(file, &found) == 0 ? found.st_ino : 0;
}

std::byte* map_part(int file, std::uint64_t at, std::size_t size) {
  void* const made = ::mmap(nullptr, whole_pages(size), PROT_READ | PROT_WRITE, MAP_SHARED, file,
                            static_cast<::off_t>(at));
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

}  // namespace

int fake_cuda::make_pool(CUmemPoolHandle_st** made, unsigned handle_types, int device) {
  const std::lock_guard guard(mutex_);
  if (!initialised_) return not_initialized;
  if (device < 0 || device >= devices_) return invalid_device;
  const int file = make_memory_file(pool_size);
  if (file < 0) return out_of_memory;
  all_pools_.push_back(std::make_shared<CUmemPoolHandle_st>());
  *made = all_pools_.back().get();
  **made = {device, handle_types, file};
  pools_.insert(*made);
  return success;
}

/// What was allocated stays.
int fake_cuda::end_pool(CUmemPoolHandle_st* pool) {
  const std::lock_guard guard(mutex_);
  if (pools_.erase(pool) == 0) return invalid_value;
  ::close(pool->file);
  return success;
}

int fake_cuda::allocate_from_pool(std::uint64_t* made, std::size_t size, CUmemPoolHandle_st* pool) {
  const std::lock_guard guard(mutex_);
  if (pools_.count(pool) == 0 || pool->imported || size == 0) return invalid_value;
  if (whole_pages(size) > pool_size - pool->used) return out_of_memory;
  fake_memory memory{fake_kind::pooled, reserve(size), size};
  memory.bytes = map_part(pool->file, pool->used, size);
  if (memory.address == 0 || memory.bytes == nullptr) return out_of_memory;
  memory.number = ++last_number_;
  memory.device = pool->device;
  memory.pool = pool;
  memory.at = pool->used;
  pool->used += whole_pages(size);
  memory_[memory.address] = memory;
  *made = memory.address;
  return success;
}

int fake_cuda::export_pool(int* made, CUmemPoolHandle_st* pool, unsigned type) {
  const std::lock_guard guard(mutex_);
  if (pools_.count(pool) == 0 || pool->imported || type != type_descriptor ||
      (pool->handle_types & type) == 0) {
    return invalid_value;
  }
  *made = export_file(pool->file);
  return *made >= 0 ? success : out_of_memory;
}

int fake_cuda::export_pool_pointer(fake_cuda_handle* made, std::uint64_t address) {
  const std::lock_guard guard(mutex_);
  const auto found = memory_.find(address);
  if (found == memory_.end() || found->second.kind != fake_kind::pooled ||
      (found->second.pool->handle_types & type_descriptor) == 0) {
    return invalid_value;
  }
  pool_pointer told;
  told.inode = inode_of(found->second.pool->file);
  told.at = found->second.at;
  told.size = found->second.size;
  *made = {};
  std::memcpy(made->bytes, &told, sizeof told);
  return success;
}

int fake_cuda::import_pool(CUmemPoolHandle_st** made, int file, unsigned type) {
  const std::lock_guard guard(mutex_);
  if (!initialised_) return not_initialized;
  if (type != type_descriptor || size_of_exported(file) != static_cast<::off_t>(pool_size)) {
    return invalid_value;
  }
  const int kept = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (kept < 0) return out_of_memory;
  all_pools_.push_back(std::make_shared<CUmemPoolHandle_st>());
  *made = all_pools_.back().get();
  **made = {0, type, kept, 0, true};
  pools_.insert(*made);
  return success;
}

/// As real drivers (NVIDIA's bug 5570902), it gives the same address for the same memory, and does
/// not count: the first that frees it takes it from all.
int fake_cuda::import_pool_pointer(std::uint64_t* made, CUmemPoolHandle_st* pool,
                                   const fake_cuda_handle& shared) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  pool_pointer told;
  std::memcpy(&told, shared.bytes, sizeof told);
  if (pools_.count(pool) == 0 || !pool->imported || told.mark != pool_pointer().mark ||
      told.inode != inode_of(pool->file) || told.size == 0 || told.size > pool_size ||
      told.at > pool_size - told.size || told.at % page_size != 0) {
    return invalid_value;
  }
  for (const auto& [address, each] : memory_) {
    if (each.kind != fake_kind::imported || each.from != told.inode || each.at != told.at) continue;
    *made = address;
    return success;
  }
  fake_memory memory{fake_kind::imported, reserve(told.size), told.size};
  memory.bytes = map_part(pool->file, told.at, told.size);
  if (memory.address == 0 || memory.bytes == nullptr) return out_of_memory;
  memory.from = told.inode;
  memory.number = ++last_number_;
  memory.pool = pool;
  memory.at = told.at;
  memory_[memory.address] = memory;
  *made = memory.address;
  return success;
}

/// Devices get all of it or nothing.
int fake_cuda::set_pool_access(CUmemPoolHandle_st* pool, const fake_cuda_access* wanted,
                               std::size_t count) {
  const std::lock_guard guard(mutex_);
  if (pools_.count(pool) == 0) return invalid_value;
  for (std::size_t i = 0; i < count; ++i) {
    if (wanted[i].location_type != 1) return invalid_value;
    if (wanted[i].location < 0 || wanted[i].location >= devices_) return invalid_device;
    if (wanted[i].flags != 0 && wanted[i].flags != access_both) return not_supported;
  }
  for (std::size_t i = 0; i < count; ++i) pool->access[wanted[i].location] = wanted[i].flags;
  return success;
}

std::size_t fake_cuda::imported_pools() {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const CUmemPoolHandle_st* const each : pools_) sum += each->imported ? 1 : 0;
  return sum;
}

}  // namespace ucx::test
