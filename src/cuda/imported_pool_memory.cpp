#include "cuda/imported_pool_memory.hpp"

#include <map>
#include <new>
#include <utility>

namespace ucx::detail {
namespace {

/// Everything that this process has imported.
struct imports {
  /// Is never destroyed: threads of copiers may outlive `main()`.
  static imports& all() noexcept {
    alignas(imports) static std::array<std::byte, sizeof(imports)> place;
    static imports* const made = ::new (place.data()) imports;
    return *made;
  }

  std::mutex mutex;
  std::map<imported_pool_memory::key, std::shared_ptr<imported_pool_memory>> known;
};

}  // namespace

std::shared_ptr<imported_pool_memory> imported_pool_memory::find(const key& wanted) {
  imports& all = imports::all();
  const std::lock_guard guard(all.mutex);
  const auto found = all.known.find(wanted);
  if (found != all.known.end()) return found->second;
  auto made = std::make_shared<imported_pool_memory>(wanted);
  all.known.emplace(wanted, made);
  return made;
}

void imported_pool_memory::drop(std::shared_ptr<imported_pool_memory> left) noexcept {
  imports& all = imports::all();
  const std::lock_guard guard(all.mutex);
  // One is the list's: who finds it takes the lock.
  if (left.use_count() == 2) all.known.erase(left->key_);
  left.reset();
}

imported_pool_memory::outcome imported_pool_memory::open(const cuda_driver& driver, int pool,
                                                         int device, std::uint64_t size) noexcept {
  const std::lock_guard guard(mutex_);
  outcome made;
  if (users_ == 0) made = import(driver, pool);
  const cuda::access both{.device = device, .flags = cuda::access_read_write};
  if (made.said == cuda::success) {
    // Of a pool a device gets all or nothing.
    made = {address_, driver.set_pool_access(pool_, &both, 1), "cuMemPoolSetAccess"};
  }
  cuda::address begin = 0;
  std::size_t length = 0;
  if (made.said == cuda::success) {
    made.call = "cuMemGetAddressRange";
    made.said = driver.address_range(&begin, &length, address_);
  }
  // The peer may have told a wrong size: beyond the allocation is other memory, or a fault.
  if (made.said == cuda::success &&
      (begin > address_ || address_ - begin > length || size > length - (address_ - begin))) {
    made.said = cuda::invalid_value;
  }
  if (made.said == cuda::success) {
    ++users_;
  } else if (users_ == 0) {
    release(driver);
  }
  return made;
}

imported_pool_memory::outcome imported_pool_memory::import(const cuda_driver& driver,
                                                           int pool) noexcept {
  void* const shared = reinterpret_cast<void*>(static_cast<std::uintptr_t>(pool));
  cuda::result said = driver.import_pool(&pool_, shared, cuda::handle_type_descriptor, 0);
  if (said != cuda::success) {
    pool_ = nullptr;
    return {0, said, "cuMemPoolImportFromShareableHandle"};
  }
  cuda::pool_pointer pointer{key_.pointer};
  said = driver.import_pool_pointer(&address_, pool_, &pointer);
  if (said != cuda::success) address_ = 0;
  return {address_, said, "cuMemPoolImportPointer"};
}

void imported_pool_memory::close(const cuda_driver& driver) noexcept {
  const std::lock_guard guard(mutex_);
  if (--users_ == 0) release(driver);
}

void imported_pool_memory::release(const cuda_driver& driver) noexcept {
  if (const cuda::address left = std::exchange(address_, 0); left != 0) driver.free(left);
  if (const cuda::pool left = std::exchange(pool_, nullptr); left != nullptr) {
    driver.destroy_pool(left);
  }
}

}  // namespace ucx::detail
