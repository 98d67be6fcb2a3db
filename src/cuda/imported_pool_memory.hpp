// Memory of another process's pool, imported once however many use it.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "cuda/cuda_driver.hpp"

namespace ucx::detail {

/// The driver gives the same address to all who import an allocation in one process. The first who
/// frees it takes it from all (NVIDIA's bug 5570902, known to CUDA's Python package, too). So they
/// share one object. Threads: sharing it is safe.
class imported_pool_memory {
 public:
  /// Which allocation. A process is told from a later one with its number.
  struct key {
    std::uint64_t process = 0;
    std::uint64_t started = 0;
    std::array<std::byte, 64> pointer = {};
    friend auto operator<=>(const key&, const key&) = default;
  };
  /// Returns the one of `wanted`, which may be imported already. Throws bad_alloc.
  static std::shared_ptr<imported_pool_memory> find(const key& wanted);
  /// Lets go of it. REQUIRES: close() came behind each open() that was successful.
  static void drop(std::shared_ptr<imported_pool_memory> left) noexcept;

  explicit imported_pool_memory(const key& wanted) noexcept : key_(wanted) {}

  struct outcome {
    cuda::address address = 0;
    cuda::result said = cuda::success;
    const char* call = "";  ///< Which said so.
  };
  /// Imports it from the pool of the descriptor `pool`, unless it is, and lets `device` reach it.
  /// Has `size` bytes, or it is refused. REQUIRES: a context of the device is current.
  outcome open(const cuda_driver& driver, int pool, int device, std::uint64_t size) noexcept;
  /// REQUIRES: a context is current, or the memory stays until the process ends.
  void close(const cuda_driver& driver) noexcept;

 private:
  outcome import(const cuda_driver& driver, int pool) noexcept;
  void release(const cuda_driver& driver) noexcept;

  const key key_;
  std::mutex mutex_;  // is held while the driver is called: others want the same memory
  cuda::pool pool_ = nullptr;
  cuda::address address_ = 0;
  std::size_t users_ = 0;
};

}  // namespace ucx::detail
