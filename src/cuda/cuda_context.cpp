#include "cuda/cuda_context.hpp"

#include <array>
#include <cstdint>
#include <new>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

const cuda_driver* find_driver(std::string& what, std::error_code& ec) {
  const cuda_driver* const driver = cuda_driver::find();
  if (driver == nullptr) {
    what = "using CUDA (there is no driver)";
    ec = errc::not_supported;
  }
  return driver;
}

}  // namespace

std::shared_ptr<const cuda_context> cuda_context::of_device(int device, std::string& what,
                                                            std::error_code& ec) {
  ec.clear();
  const cuda_driver* const driver = find_driver(what, ec);
  if (driver == nullptr) return nullptr;
  const int wanted = device == -1 ? 0 : device;
  const std::shared_ptr<cuda_context> made(new cuda_context(*driver, wanted));
  const beside_captures guard(*driver);
  const char* call = "cuInit";
  cuda::device found = 0;
  cuda::result result = driver->init(0);
  if (result == cuda::success) {
    call = "cuDeviceGet";
    result = driver->device_get(&found, made->device_);
  }
  if (result == cuda::success) {
    call = "cuDevicePrimaryCtxRetain";
    result = driver->primary_context_retain(&made->handle_, found);
  }
  if (result == cuda::success) {
    made->retained_ = found;
    return made;
  }
  what = "using CUDA device " + std::to_string(made->device_) + " (" +
         cuda_words(*driver, call, result) + ")";
  // A number that names no device is an argument that makes no sense here, on this machine.
  ec = result == cuda::invalid_value ? make_error_code(errc::not_supported) : cuda_error(result);
  return nullptr;
}

cuda_owner cuda_context::owner_of(const void* address, std::string& what, std::error_code& ec) {
  ec.clear();
  const cuda_driver* const driver = find_driver(what, ec);
  if (driver == nullptr) return {};
  cuda_owner found;
  unsigned type = 0;
  unsigned managed = 0;
  std::array<int, 4> attributes{cuda::attribute_context, cuda::attribute_device,
                                cuda::attribute_memory_type, cuda::attribute_is_managed};
  std::array<void*, 4> values{&found.context, &found.device, &type, &managed};
  const cuda::result result = driver->pointer_attributes(
      static_cast<unsigned>(attributes.size()), attributes.data(), values.data(),
      static_cast<cuda::address>(reinterpret_cast<std::uintptr_t>(address)));
  if (result != cuda::success) {
    what = "finding out where memory is (" + cuda_words(*driver, "cuPointerGetAttributes", result) +
           ")";
    ec = errc::not_supported;
  } else if (type == 0 && managed == 0) {
    what = "finding out where memory is (it is no device's any more)";
    ec = errc::io_error;
  }
  return found;
}

std::shared_ptr<const cuda_context> cuda_context::of_owner(const cuda_owner& owner,
                                                           std::string& what, std::error_code& ec) {
  ec.clear();
  if (owner.context == nullptr) return of_device(owner.device, what, ec);
  // The program may release it; then it stays as long as it is used here.
  std::shared_ptr<const cuda_context> primary = primary_in_use(owner.device);
  if (primary && primary->handle() == owner.context) return primary;
  const cuda_driver* const driver = find_driver(what, ec);
  if (driver == nullptr) return nullptr;
  const std::shared_ptr<cuda_context> made(new cuda_context(*driver, owner.device));
  made->handle_ = owner.context;
  return made;
}

std::shared_ptr<const cuda_context> cuda_context::of_address(const void* address, std::string& what,
                                                             std::error_code& ec) {
  const cuda_owner owner = owner_of(address, what, ec);
  return ec ? nullptr : of_owner(owner, what, ec);
}

std::shared_ptr<const cuda_context> cuda_context::of_stream(const cuda_driver& driver,
                                                            cuda::stream stream, std::string& what,
                                                            std::error_code& ec) {
  ec.clear();
  const std::shared_ptr<cuda_context> made(new cuda_context(driver, -1));
  const cuda::result result = driver.stream_context(stream, &made->handle_);
  if (result == cuda::success) return made;
  what = cuda_words(driver, "cuStreamGetCtx", result);
  // A default stream, and no context is current; or the stream's is over.
  ec = result == cuda::invalid_context ? make_error_code(errc::invalid_argument)
                                       : cuda_error(result);
  return nullptr;
}

std::shared_ptr<const cuda_context> cuda_context::primary_in_use(int device) noexcept {
  const cuda_driver* const driver = cuda_driver::find();
  if (driver == nullptr) return nullptr;
  unsigned flags = 0;
  int active = 0;
  cuda::device found = 0;
  if (driver->device_get(&found, device) != cuda::success ||
      driver->primary_context_state(found, &flags, &active) != cuda::success || active == 0) {
    return nullptr;
  }
  try {
    std::string what;
    std::error_code ec;
    return of_device(device, what, ec);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

cuda_context::~cuda_context() {
  if (retained_ < 0) return;
  const beside_captures guard(*driver_);
  driver_->primary_context_release(retained_);
}

}  // namespace ucx::detail
