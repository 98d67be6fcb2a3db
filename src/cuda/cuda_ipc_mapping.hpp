// Memory of a device that another process shares by a handle of the driver's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cuda/device_mapping.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {

/// An allocation of `cuMemAlloc`, by its `CUipcMemHandle`.
class cuda_ipc_mapping final : public device_mapping {
 public:
  /// Of the region of `described`, in the context of `copier`, which its copies go by.
  static std::shared_ptr<device_mapping> make(const std::shared_ptr<device_copier>& copier,
                                              const remote_descriptor& described);
  ~cuda_ipc_mapping() override;
  std::string refusal() const override;

 private:
  cuda_ipc_mapping(std::shared_ptr<const cuda_context> context,
                   const remote_descriptor& described) noexcept;
  std::byte* map() noexcept override;
  bool holds_region() const noexcept;

  const cuda_ipc_handle handle_;
  const std::uint64_t size_;
  cuda::address opened_ = 0;
  cuda::result result_ = cuda::success;
};

}  // namespace ucx::detail
