// Memory of a device that is registered with UCX, so that adapters of other hosts reach it.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "cuda/cuda_context.hpp"
#include "ucx/access.hpp"
#include "ucx/remote_descriptor.hpp"
#include "worker/device_plane.hpp"

namespace ucx::detail {

class plane_memory {
 public:
  /// Registers `bytes`, which are a device's, of `context`. Errors: not_supported, and why not.
  static result<std::unique_ptr<plane_memory>> map(device_plane& plane, const cuda_context& context,
                                                   std::span<std::byte> bytes, access granted);
  plane_memory(const plane_memory&) = delete;
  plane_memory& operator=(const plane_memory&) = delete;
  /// Ends the registration and its keys. REQUIRES: the memory is there still, and the plane.
  ~plane_memory();

  const device_rma_handle& handle() const noexcept { return told_; }

 private:
  plane_memory(device_plane& plane, std::span<std::byte> bytes) noexcept
      : plane_(plane), bytes_(bytes) {}
  result<void> check_kind() const;
  result<void> pack_key();

  device_plane& plane_;
  const std::span<std::byte> bytes_;
  ucp_mem_h memory_ = nullptr;
  device_rma_handle told_;
};

}  // namespace ucx::detail
