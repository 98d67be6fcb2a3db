// The writes of network adapters into memory of a device (GPUDirect RDMA).
#pragma once

#include "cuda/cuda_context.hpp"

namespace ucx::detail {

/// Returns whether work of the device sees it without more ado.
bool sees_adapter_writes(const cuda_context& context) noexcept;

/// Lets later work of the device see what has been written until now, where it does not by itself.
/// Returns whether it does. May wait for the driver.
bool flush_adapter_writes(const cuda_context& context) noexcept;

}  // namespace ucx::detail
