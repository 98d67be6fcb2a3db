#include "cuda/adapter_writes.hpp"

namespace ucx::detail {
namespace {

constexpr int attribute_flush_options = 117;
constexpr int attribute_write_order = 118;
constexpr int flushed_by_host = 1;
constexpr int order_of_owner = 100;
constexpr int target_current_context = 0;
constexpr int scope_of_owner = 100;

/// Returns an attribute of the device of the current context; 0 where the driver has no such one.
int device_attribute_in(const cuda_driver& driver, int which) noexcept {
  int value = 0;
  cuda::device device = 0;
  if (driver.device_attribute == nullptr || driver.context_device == nullptr) return 0;
  if (driver.context_device(&device) != cuda::success) return 0;
  return driver.device_attribute(&value, which, device) == cuda::success ? value : 0;
}

}  // namespace

bool sees_adapter_writes(const cuda_context& context) noexcept {
  const current_context current(context);
  if (current.result() != cuda::success) return false;
  return device_attribute_in(context.driver(), attribute_write_order) >= order_of_owner;
}

bool flush_adapter_writes(const cuda_context& context) noexcept {
  const current_context current(context);
  const cuda_driver& driver = context.driver();
  if (current.result() != cuda::success) return false;
  if (device_attribute_in(driver, attribute_write_order) >= order_of_owner) return true;
  if (driver.flush_adapter_writes == nullptr) return false;
  if ((device_attribute_in(driver, attribute_flush_options) & flushed_by_host) == 0) return false;
  return driver.flush_adapter_writes(target_current_context, scope_of_owner) == cuda::success;
}

}  // namespace ucx::detail
