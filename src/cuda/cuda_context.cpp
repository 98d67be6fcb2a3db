#include "cuda/cuda_context.hpp"

#include <array>
#include <cstdint>
#include <new>
#include <string>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

result<const cuda_driver*> find_driver() {
  const cuda_driver* const driver = cuda_driver::find();
  if (driver != nullptr) return driver;
  return failure{errc::not_supported, "using CUDA (there is no driver)"};
}

}  // namespace

result<std::shared_ptr<const cuda_context>> cuda_context::of_device(int device) {
  const auto there = find_driver();
  if (!there) return there.why();
  const cuda_driver& driver = **there;
  const int wanted = device == -1 ? 0 : device;
  const std::shared_ptr<cuda_context> made(new cuda_context(driver, wanted));
  const beside_captures guard(driver);
  const char* call = "cuInit";
  cuda::device found = 0;
  cuda::result said = driver.init(0);
  if (said == cuda::success) {
    call = "cuDeviceGet";
    said = driver.device_get(&found, made->device_);
  }
  if (said == cuda::success) {
    call = "cuDevicePrimaryCtxRetain";
    said = driver.primary_context_retain(&made->handle_, found);
  }
  if (said == cuda::success) {
    made->retained_ = found;
    return made;
  }
  // A number that names no device is an argument that makes no sense here, on this machine.
  return failure{
      said == cuda::invalid_value ? make_error_code(errc::not_supported) : cuda_error(said),
      "using CUDA device " + std::to_string(made->device_) + " (" + cuda_words(driver, call, said) +
          ")"};
}

result<cuda_owner> cuda_context::owner_of(const void* address) {
  const auto driver = find_driver();
  if (!driver) return driver.why();
  cuda_owner found;
  unsigned type = 0;
  unsigned managed = 0;
  std::array<int, 4> attributes{cuda::attribute_context, cuda::attribute_device,
                                cuda::attribute_memory_type, cuda::attribute_is_managed};
  std::array<void*, 4> values{&found.context, &found.device, &type, &managed};
  const cuda::result said = (*driver)->pointer_attributes(
      static_cast<unsigned>(attributes.size()), attributes.data(), values.data(),
      static_cast<cuda::address>(reinterpret_cast<std::uintptr_t>(address)));
  if (said != cuda::success) {
    return failure{errc::not_supported, "finding out where memory is (" +
                                            cuda_words(**driver, "cuPointerGetAttributes", said) +
                                            ")"};
  }
  if (type == 0 && managed == 0) {
    return failure{errc::io_error, "finding out where memory is (it is no device's any more)"};
  }
  return found;
}

result<std::shared_ptr<const cuda_context>> cuda_context::of_owner(const cuda_owner& owner) {
  if (owner.context == nullptr) return of_device(owner.device);
  // The program may release it; then it stays as long as it is used here.
  std::shared_ptr<const cuda_context> primary = primary_in_use(owner.device);
  if (primary && primary->handle() == owner.context) return primary;
  const auto driver = find_driver();
  if (!driver) return driver.why();
  const std::shared_ptr<cuda_context> made(new cuda_context(**driver, owner.device));
  made->handle_ = owner.context;
  return made;
}

result<std::shared_ptr<const cuda_context>> cuda_context::of_address(const void* address) {
  const auto owner = owner_of(address);
  if (!owner) return owner.why();
  return of_owner(*owner);
}

result<std::shared_ptr<const cuda_context>> cuda_context::of_stream(const cuda_driver& driver,
                                                                    cuda::stream stream) {
  const std::shared_ptr<cuda_context> made(new cuda_context(driver, -1));
  const cuda::result said = driver.stream_context(stream, &made->handle_);
  if (said == cuda::success) return made;
  // A default stream, and no context is current; or the stream's is over.
  return failure{
      said == cuda::invalid_context ? make_error_code(errc::invalid_argument) : cuda_error(said),
      cuda_words(driver, "cuStreamGetCtx", said)};
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
    auto made = of_device(device);
    return made ? *std::move(made) : nullptr;
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
