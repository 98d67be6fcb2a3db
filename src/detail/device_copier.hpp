// Copies by the CUDA driver, each over when the call returns.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "detail/cuda_context.hpp"

namespace ucx::detail {

/// Has a stream of its own in one context, so that a copy waits for no work of the program's.
/// Threads: sharing one object is safe.
class device_copier {
 public:
  /// Errors: no_memory, not_supported, io_error.
  static std::shared_ptr<device_copier> make(std::shared_ptr<const cuda_context> context,
                                             std::string& what, std::error_code& ec);
  device_copier(const device_copier&) = delete;
  device_copier& operator=(const device_copier&) = delete;
  ~device_copier();

  // Errors of each: io_error (the driver's: memory that was freed), no_memory.
  std::error_code copy_in(void* device, const void* from, std::size_t size) noexcept;
  std::error_code copy_out(void* into, const void* device, std::size_t size) noexcept;
  /// Copies between memory that the driver knows.
  std::error_code copy_within(void* into, const void* from, std::size_t size) noexcept;
  /// Sets `size` bytes to zero; returns what the driver said, and of which call.
  cuda::result clear(void* bytes, std::size_t size, const char*& call) noexcept;

  const cuda_context& context() const noexcept { return *context_; }
  /// Returns whether a copy has failed: its context may be over.
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

 private:
  explicit device_copier(std::shared_ptr<const cuda_context> context) noexcept
      : context_(std::move(context)) {}
  template <class Start>
  std::error_code run(Start&& start) noexcept;

  const std::shared_ptr<const cuda_context> context_;
  cuda::stream stream_ = nullptr;
  std::atomic<bool> failed_{false};
};

/// The copiers of a worker, one a context. REQUIRES: external synchronization.
class device_copiers {
 public:
  /// Returns the one for memory at `address`, which is a device's. Errors: as make().
  std::shared_ptr<device_copier> of(const void* address, std::error_code& ec);

 private:
  std::map<cuda::context, std::shared_ptr<device_copier>> known_;
};

/// Returns the number by which the driver knows a pointer.
cuda::address address_of(const void* pointer) noexcept;

}  // namespace ucx::detail
