#include "detail/device_copier.hpp"

#include <cstdint>
#include <new>

#include "ucx/error.hpp"

namespace ucx::detail {

std::shared_ptr<device_copier> device_copier::make(std::shared_ptr<const cuda_context> context,
                                                   std::string& what, std::error_code& ec) {
  ec.clear();
  const std::shared_ptr<device_copier> made(new device_copier(std::move(context)));
  const cuda_driver& driver = made->context_->driver();
  const current_context current(*made->context_);
  const char* call = "cuCtxPushCurrent";
  cuda::result result = current.result();
  if (result == cuda::success) {
    call = "cuStreamCreate";
    result = driver.stream_create(&made->stream_, cuda::stream_non_blocking);
  }
  if (result == cuda::success) return made;
  made->stream_ = nullptr;
  what = "preparing copies of a device's memory (" + cuda_words(driver, call, result) + ")";
  ec = cuda_error(result);
  return nullptr;
}

device_copier::~device_copier() {
  if (stream_ == nullptr) return;
  const current_context current(*context_);
  // A stream goes with its context.
  if (current.result() == cuda::success) context_->driver().stream_destroy(stream_);
}

std::error_code device_copier::copy_in(void* device, const void* from, std::size_t size) noexcept {
  return run([&](const cuda_driver& driver) {
    return driver.copy_to_device(address_of(device), from, size, stream_);
  });
}

std::error_code device_copier::copy_out(void* into, const void* device, std::size_t size) noexcept {
  return run([&](const cuda_driver& driver) {
    return driver.copy_from_device(into, address_of(device), size, stream_);
  });
}

std::error_code device_copier::copy_within(void* into, const void* from,
                                           std::size_t size) noexcept {
  return run([&](const cuda_driver& driver) {
    return driver.copy(address_of(into), address_of(from), size, stream_);
  });
}

/// Starts a copy, and returns when it is over.
template <class Start>
std::error_code device_copier::run(Start&& start) noexcept {
  const cuda_driver& driver = context_->driver();
  const current_context current(*context_);
  cuda::result result = current.result();
  if (result == cuda::success) result = start(driver);
  if (result == cuda::success) result = driver.stream_synchronize(stream_);
  if (result == cuda::success) return {};
  failed_.store(true, std::memory_order_relaxed);
  // The arguments were right once: the memory is gone, or the device is.
  return result == cuda::out_of_memory ? errc::no_memory : errc::io_error;
}

cuda::result device_copier::clear(void* bytes, std::size_t size, const char*& call) noexcept {
  const cuda_driver& driver = context_->driver();
  const current_context current(*context_);
  call = "cuCtxPushCurrent";
  if (current.result() != cuda::success) return current.result();
  call = "cuMemsetD8Async";
  const cuda::result result = driver.fill(address_of(bytes), 0, size, stream_);
  if (result != cuda::success) return result;
  call = "cuStreamSynchronize";
  return driver.stream_synchronize(stream_);
}

std::shared_ptr<device_copier> device_copiers::of(const void* address, std::error_code& ec) {
  std::string what;
  std::shared_ptr<const cuda_context> context = cuda_context::of_address(address, what, ec);
  if (ec) return nullptr;
  const cuda::context handle = context->handle();
  if (const auto found = known_.find(handle); found != known_.end()) {
    // Another context may have got the address of one that is over.
    if (!found->second->failed()) return found->second;
    known_.erase(found);
  }
  std::shared_ptr<device_copier> made = device_copier::make(std::move(context), what, ec);
  if (made) known_.emplace(handle, made);
  return made;
}

cuda::address address_of(const void* pointer) noexcept {
  return static_cast<cuda::address>(reinterpret_cast<std::uintptr_t>(pointer));
}

}  // namespace ucx::detail
