// Copiers for a worker, between memory of devices and the host's.
#pragma once

#include <map>
#include <memory>

#include "base/result.hpp"
#include "cuda/device_copier.hpp"

namespace ucx::detail {

/// The copiers of a worker, one a context. REQUIRES: external synchronization.
class device_copiers {
 public:
  device_copiers() = default;
  device_copiers(const device_copiers&) = delete;
  device_copiers& operator=(const device_copiers&) = delete;
  /// Waits for copies that run, but not for ever.
  ~device_copiers();

  /// Returns the one for memory at `address`, which is a device's. Errors: as make().
  result<std::shared_ptr<device_copier>> of(const void* address);
  /// Returns one in the primary context of `device`, or else of another device, that somebody in
  /// this process uses; null where there is none.
  std::shared_ptr<device_copier> of_device_in_use(int device);
  /// Ends those of contexts of the program's, which may end when this returns. Waits as at the end.
  void drop_borrowed() noexcept;

 private:
  result<std::shared_ptr<device_copier>> in(std::shared_ptr<const cuda_context> context);

  std::map<cuda::context, std::shared_ptr<device_copier>> known_;
};

}  // namespace ucx::detail
