// Memory of the pretended devices that programs map where they like: cuMemCreate, cuMemMap and what
// belongs to them. The bytes of each allocation are a file in memory.
#include "fake_virtual.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "fake_device.hpp"
#include "fake_pages.hpp"
#include "fake_results.hpp"

namespace ucx::test {
namespace {

/// Where the descriptors that were given out stand in their file, as no other does.
constexpr ::off_t position_of_exported = 0x75637869;

std::byte* map_nothing(std::byte* at, std::size_t size) {
  const int fixed = at != nullptr ? MAP_FIXED : 0;
  void* const made =
      ::mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
  return made == MAP_FAILED ? nullptr : static_cast<std::byte*>(made);
}

}  // namespace

int make_memory_file(std::size_t size) {
  const int file = ::memfd_create("fake_cuda", MFD_CLOEXEC);
  if (file >= 0 && ::ftruncate(file, static_cast<::off_t>(size)) == 0) return file;
  if (file >= 0) ::close(file);
  return -1;
}

int export_file(int file) {
  const int made = ::open(("/proc/self/fd/" + std::to_string(file)).c_str(), O_RDWR);
  if (made < 0 || ::lseek(made, position_of_exported, SEEK_SET) == position_of_exported) {
    return made;
  }
  ::close(made);
  return -1;
}

::off_t size_of_exported(int file, ::ino_t* inode) {
  struct ::stat found = {};
  if (::lseek(file, 0, SEEK_CUR) != position_of_exported || ::fstat(file, &found) != 0) return -1;
  if (inode != nullptr) *inode = found.st_ino;
  return found.st_size;
}

int fake_cuda::create_allocation(std::uint64_t* made, std::size_t size,
                                 const fake_cuda_properties& wanted) {
  const std::lock_guard guard(mutex_);
  if (!initialised_) return not_initialized;
  const bool is_device = wanted.location_type == 1 && wanted.location >= 0;
  if (wanted.type != 1 || !is_device || size == 0 || size % granularity != 0) return invalid_value;
  if (wanted.location >= devices_) return invalid_device;
  if (size > fake_cuda_device_size - taken_on(wanted.location)) return out_of_memory;
  const int file = make_memory_file(size);
  if (file < 0) return out_of_memory;
  *made = ++last_number_;
  allocations_[*made] = {file, size, wanted.location, wanted.handle_types, 1, 0};
  return success;
}

void fake_cuda::forget_if_unused(std::uint64_t handle) {
  const fake_allocation& left = allocations_.at(handle);
  if (left.handles > 0 || left.places > 0) return;
  ::close(left.file);
  allocations_.erase(handle);
}

int fake_cuda::release_allocation(std::uint64_t handle) {
  const std::lock_guard guard(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end() || found->second.handles == 0) return invalid_value;
  --found->second.handles;
  forget_if_unused(handle);
  return success;
}

int fake_cuda::retain_allocation(std::uint64_t* made, std::uint64_t address) {
  const std::lock_guard guard(mutex_);
  const fake_memory* const found = holder(address);
  if (found == nullptr || found->kind != fake_kind::mapped) return invalid_value;
  ++allocations_.at(found->handle).handles;
  *made = found->handle;
  return success;
}

int fake_cuda::export_allocation(int* made, std::uint64_t handle, unsigned type) {
  const std::lock_guard guard(mutex_);
  const auto found = allocations_.find(handle);
  if (found == allocations_.end() || found->second.handles == 0 || type != type_descriptor ||
      (found->second.handle_types & type) == 0) {
    return invalid_value;
  }
  *made = export_file(found->second.file);
  return *made >= 0 ? success : out_of_memory;
}

int fake_cuda::import_allocation(std::uint64_t* made, int file, unsigned type) {
  const std::lock_guard guard(mutex_);
  if (!initialised_) return not_initialized;
  const ::off_t size = size_of_exported(file);
  if (type != type_descriptor || size <= 0) return invalid_value;
  const int kept = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (kept < 0) return out_of_memory;
  *made = ++last_number_;
  // Of no device here: its owner has the memory.
  allocations_[*made] = {kept, static_cast<std::size_t>(size), -1, type, 1, 0};
  return success;
}

int fake_cuda::reserve_addresses(std::uint64_t* made, std::size_t size) {
  const std::lock_guard guard(mutex_);
  if (!initialised_) return not_initialized;
  if (size == 0 || size % page_size != 0) return invalid_value;
  if (size > std::size_t{1} << 44U) return out_of_memory;
  const std::uint64_t address = reserve(size);
  std::byte* const bytes = map_nothing(nullptr, size);
  if (address == 0 || bytes == nullptr) return out_of_memory;
  reservations_[address] = {size, bytes};
  *made = address;
  return success;
}

fake_reservation* fake_cuda::reservation_of(std::uint64_t address) {
  const auto after = reservations_.upper_bound(address);
  if (after == reservations_.begin()) return nullptr;
  const auto before = std::prev(after);
  return address - before->first < before->second.size ? &before->second : nullptr;
}

int fake_cuda::free_addresses(std::uint64_t address, std::size_t size) {
  const std::lock_guard guard(mutex_);
  const auto found = reservations_.find(address);
  if (found == reservations_.end() || found->second.size != size) return invalid_value;
  const auto mapped = memory_.lower_bound(address);
  if (mapped != memory_.end() && mapped->first - address < size) return invalid_value;
  reservations_.erase(found);
  gone_[address] = size;  // nothing else gets the address
  return success;
}

int fake_cuda::map(std::uint64_t address, std::size_t size, std::size_t offset,
                   std::uint64_t handle) {
  const std::lock_guard guard(mutex_);
  const auto found = allocations_.find(handle);
  const fake_reservation* const place = reservation_of(address);
  if (found == allocations_.end() || found->second.handles == 0 || place == nullptr ||
      offset != 0 || size == 0 || size % granularity != 0 || size > found->second.size) {
    return invalid_value;
  }
  const std::uint64_t begin = std::prev(reservations_.upper_bound(address))->first;
  const std::uint64_t at = address - begin;
  if (size > place->size - at) return invalid_value;
  const auto next = memory_.lower_bound(address);
  if (holder(address) != nullptr || (next != memory_.end() && next->first - address < size)) {
    return invalid_value;
  }
  void* const bytes = ::mmap(place->bytes + at, size, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, found->second.file, 0);
  if (bytes == MAP_FAILED) return out_of_memory;
  fake_memory memory{fake_kind::mapped, address, size};
  memory.bytes = static_cast<std::byte*>(bytes);
  memory.number = ++last_number_;
  memory.device = std::max(found->second.device, 0);
  memory.handle = handle;
  memory_[address] = memory;
  ++found->second.places;
  return success;
}

void fake_cuda::unmap_one(std::map<std::uint64_t, fake_memory>::iterator found) {
  const fake_memory gone = found->second;
  map_nothing(gone.bytes, gone.size);
  memory_.erase(found);
  --allocations_.at(gone.handle).places;
  forget_if_unused(gone.handle);
}

/// Whole mappings only.
int fake_cuda::unmap(std::uint64_t address, std::size_t size) {
  const std::lock_guard guard(mutex_);
  std::vector<std::uint64_t> parts;
  for (std::uint64_t at = address; at < address + size; at += memory_.at(at).size) {
    const auto found = memory_.find(at);
    if (found == memory_.end() || found->second.kind != fake_kind::mapped ||
        found->second.size > address + size - at) {
      return invalid_value;
    }
    parts.push_back(at);
  }
  for (const std::uint64_t each : parts) unmap_one(memory_.find(each));
  return parts.empty() ? invalid_value : success;
}

int fake_cuda::set_access(std::uint64_t address, std::size_t size, const fake_cuda_access* wanted,
                          std::size_t count) {
  const std::lock_guard guard(mutex_);
  for (std::size_t i = 0; i < count; ++i) {
    if (wanted[i].location_type != 1 || (wanted[i].flags & ~access_both) != 0) return invalid_value;
    if (wanted[i].location < 0 || wanted[i].location >= devices_) return invalid_device;
  }
  std::vector<fake_memory*> parts;
  for (std::uint64_t at = address; at < address + size;) {
    const auto found = memory_.find(at);
    if (found == memory_.end() || found->second.kind != fake_kind::mapped ||
        found->second.size > address + size - at) {
      return invalid_value;
    }
    parts.push_back(&found->second);
    at += found->second.size;
  }
  for (fake_memory* const each : parts) {
    for (std::size_t i = 0; i < count; ++i) each->access[wanted[i].location] = wanted[i].flags;
  }
  return parts.empty() ? invalid_value : success;
}

/// Other memory than what is mapped, or a pool's, is everybody's.
bool fake_cuda::may_access(std::uint64_t address, std::size_t size, int by, unsigned needed) {
  const auto allows = [&](const fake_access& access) {
    const auto found = access.find(by);
    return found != access.end() && (found->second & needed) == needed;
  };
  const fake_memory* found = holder(address);
  if (found->pool != nullptr) {
    const bool resident = !found->pool->imported && found->device == by;
    return resident || allows(found->pool->access);
  }
  if (found->kind != fake_kind::mapped) return true;
  for (std::uint64_t at = address; at < address + size; at = found->address + found->size) {
    found = holder(at);
    if (found == nullptr || found->kind != fake_kind::mapped || !allows(found->access))
      return false;
  }
  return true;
}

int fake_cuda::range_of(std::uint64_t* begin, std::size_t* size, std::uint64_t address) {
  const std::lock_guard guard(mutex_);
  if (current() == nullptr) return invalid_context;
  const fake_memory* const found = holder(address);
  if (found == nullptr) return not_found;
  if (begin != nullptr) *begin = found->address;
  if (size != nullptr) *size = found->size;
  return success;
}

std::pair<std::uint64_t, std::size_t> fake_cuda::mappable_range(const fake_memory& memory) {
  const std::lock_guard guard(mutex_);
  const fake_reservation* const place =
      memory.kind == fake_kind::mapped ? reservation_of(memory.address) : nullptr;
  if (place == nullptr) return {memory.address, memory.size};
  return {std::prev(reservations_.upper_bound(memory.address))->first, place->size};
}

unsigned fake_cuda::handle_types_of(const fake_memory& memory) {
  const std::lock_guard guard(mutex_);
  if (memory.pool != nullptr) return memory.pool->handle_types;
  const auto found = allocations_.find(memory.handle);
  return found != allocations_.end() ? found->second.handle_types : 0;
}

void fake_cuda::forget_virtual() {
  for (auto each = memory_.begin(); each != memory_.end();) {
    const auto next = std::next(each);
    if (each->second.kind == fake_kind::mapped) {
      gone_[each->first] = each->second.size;
      unmap_one(each);
    }
    each = next;
  }
  for (const auto& [address, each] : reservations_) gone_[address] = each.size;
  reservations_.clear();
  for (const auto& [handle, each] : allocations_) ::close(each.file);
  allocations_.clear();
  for (const CUmemPoolHandle_st* const each : pools_) ::close(each->file);
  pools_.clear();
}

std::size_t fake_cuda::handles() {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const auto& [handle, each] : allocations_) sum += each.handles;
  return sum;
}

std::size_t fake_cuda::places() {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const auto& [handle, each] : allocations_) sum += each.places;
  return sum;
}

std::size_t fake_cuda::reservations() {
  const std::lock_guard guard(mutex_);
  return reservations_.size();
}

}  // namespace ucx::test
