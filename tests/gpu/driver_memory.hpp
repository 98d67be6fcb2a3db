// Memory that a program, or a framework's allocator, has of the driver in other ways than by
// cuMemAlloc: of whatever driver the library uses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "gpu/driver_calls.hpp"

struct CUmemPoolHandle_st;

namespace ucx::test {

/// Of the first device. REQUIRES: a `driver_program`, which outlives it.
class driver_memory {
 public:
  /// CU_MEM_HANDLE_TYPE_NONE, and CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.
  enum class handles : unsigned { none = 0, descriptors = 1 };
  static constexpr std::size_t granularity = std::size_t{2} << 20U;

  /// Reserves addresses, and maps allocations of these sizes there, one behind the other, as
  /// expandable segments have them. REQUIRES: each is a multiple of `granularity`.
  static std::unique_ptr<driver_memory> mapped(const std::vector<std::size_t>& sizes,
                                               handles types) {
    std::unique_ptr<driver_memory> made(new driver_memory);
    for (const std::size_t each : sizes) made->size_ += each;
    expect(call<int(std::uint64_t*, std::size_t, std::size_t, std::uint64_t, unsigned long long)>(
        "cuMemAddressReserve")(&made->begin_, made->size_, 0, 0, 0));
    std::uint64_t at = made->begin_;
    for (const std::size_t each : sizes) {
      const properties wanted{.handle_types = static_cast<unsigned>(types)};
      std::uint64_t handle = 0;
      expect(call<int(std::uint64_t*, std::size_t, const properties*, unsigned long long)>(
          "cuMemCreate")(&handle, each, &wanted, 0));
      expect(call<int(std::uint64_t, std::size_t, std::size_t, std::uint64_t, unsigned long long)>(
          "cuMemMap")(at, each, 0, handle, 0));
      expect(call<int(std::uint64_t)>("cuMemRelease")(handle));
      at += each;
    }
    const access both;
    expect(call<int(std::uint64_t, std::size_t, const access*, std::size_t)>("cuMemSetAccess")(
        made->begin_, made->size_, &both, 1));
    made->parts_ = sizes;
    return made;
  }
  /// Makes a pool, and allocates `size` bytes of it.
  static std::unique_ptr<driver_memory> pooled(std::size_t size, handles types) {
    std::unique_ptr<driver_memory> made(new driver_memory);
    made->size_ = size;
    const pool_properties wanted{.handle_types = static_cast<unsigned>(types)};
    expect(call<int(CUmemPoolHandle_st**, const pool_properties*)>("cuMemPoolCreate")(&made->pool_,
                                                                                      &wanted));
    CUstream_st* const stream = driver_program::make_stream();
    expect(call<int(std::uint64_t*, std::size_t, CUmemPoolHandle_st*, CUstream_st*)>(
        "cuMemAllocFromPoolAsync")(&made->begin_, size, made->pool_, stream));
    driver_program::wait_for(stream);
    driver_program::end_stream(stream);
    return made;
  }
  driver_memory(const driver_memory&) = delete;
  driver_memory& operator=(const driver_memory&) = delete;
  ~driver_memory() {
    if (pool_ != nullptr) {
      expect(call<int(std::uint64_t)>("cuMemFree_v2")(begin_));
      expect(call<int(CUmemPoolHandle_st*)>("cuMemPoolDestroy")(pool_));
      return;
    }
    std::uint64_t at = begin_;
    for (const std::size_t each : parts_) {
      expect(call<int(std::uint64_t, std::size_t)>("cuMemUnmap")(at, each));
      at += each;
    }
    expect(call<int(std::uint64_t, std::size_t)>("cuMemAddressFree")(begin_, size_));
  }

  std::span<std::byte> bytes() const noexcept {
    return {reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(begin_)), size_};
  }

 private:
  /// CUmemAllocationProp, CUmemAccessDesc, CUmemPoolProps.
  struct properties {
    int type = 1;
    unsigned handle_types = 0;
    int location_type = 1;
    int location = 0;
    void* other = nullptr;
    unsigned char flags[8] = {};
  };
  struct access {
    int location_type = 1;
    int location = 0;
    unsigned flags = 3;
  };
  struct pool_properties {
    int type = 1;
    unsigned handle_types = 0;
    int location_type = 1;
    int location = 0;
    void* other = nullptr;
    std::size_t most = 0;
    unsigned char reserved[56] = {};
  };

  driver_memory() = default;
  template <class Function>
  static Function& call(const char* name) {
    Function* const found = driver_call<Function>(name);
    if (found == nullptr) std::abort();
    return *found;
  }
  static void expect(int result) {
    if (result != 0) std::abort();
  }

  std::uint64_t begin_ = 0;
  std::size_t size_ = 0;
  std::vector<std::size_t> parts_;
  CUmemPoolHandle_st* pool_ = nullptr;
};

}  // namespace ucx::test
