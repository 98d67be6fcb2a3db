#include "region/device_loan.hpp"

#include <unistd.h>

#include <array>
#include <cstdint>
#include <utility>

#include "region/device_memory.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

memory_handle handle_of(const device_memory& lent) noexcept {
  const cuda_context& context = lent.context();
  const cuda_driver& driver = context.driver();
  if (lent.place().kind != memory_kind::cuda || !driver.shares_memory()) return {};
  const current_context current(context);
  if (current.result() != cuda::success) return {};
  cuda::address begin = 0;
  std::size_t size = 0;
  std::array<int, 2> attributes{cuda::attribute_range_start, cuda::attribute_range_size};
  std::array<void*, 2> values{&begin, &size};
  const cuda::address first = address_of(lent.where().data());
  if (driver.pointer_attributes(2, attributes.data(), values.data(), first) != cuda::success ||
      first - begin > size || lent.where().size() > size - (first - begin)) {
    return {};
  }
  cuda::memory_handle made;
  if (driver.share(&made, begin) != cuda::success) return {};
  return {.bytes = made.bytes, .size = size, .offset = first - begin};
}

borrowed_device::borrowed_device(const remote_descriptor& described,
                                 std::unique_ptr<borrowed_region> record) noexcept
    : described_(described), record_(std::move(record)) {}

std::unique_ptr<borrowed_device> borrowed_device::open(ucp_api& api,
                                                       const remote_descriptor& described,
                                                       std::string& why_not) {
  const memory_handle& handle = described.handle;
  const cuda_driver* const driver = cuda_driver::find();
  if (handle.size == 0) {
    why_not = "its owner does not share it with processes of its host";
  } else if (described.kind != memory_kind::cuda || handle.offset > handle.size ||
             described.size > handle.size - handle.offset) {
    why_not = "the descriptor contradicts itself";
  } else if (driver == nullptr || !driver->shares_memory()) {
    why_not = "there is no CUDA driver here that shares memory";
  } else if (std::unique_ptr<borrowed_region> record =
                 borrowed_region::open(api, described, why_not)) {
    // A driver opens no handles of its own process.
    if (described.loan.process != static_cast<std::uint64_t>(::getpid())) {
      return std::unique_ptr<borrowed_device>(new borrowed_device(described, std::move(record)));
    }
    why_not = "its owner is this process";
  }
  return nullptr;
}

std::shared_ptr<device_copier> borrowed_device::copier_of_host(worker_core& worker) {
  if (!copier_of_host_ || copier_of_host_->failed()) {
    copier_of_host_ = worker.copiers().of_device_in_use(described_.device);
  }
  return copier_of_host_;
}

std::shared_ptr<device_mapping> borrowed_device::mapping_for(
    const std::shared_ptr<device_copier>& copier) {
  std::shared_ptr<device_mapping>& found = mappings_[copier->context()->handle()];
  // Another context may have got the place of one that is over.
  if (!found || found->context() != copier->context())
    found = device_mapping::make(copier, described_);
  return found->is_refused() ? nullptr : found;
}

std::string borrowed_device::refusal() const {
  for (const auto& [context, each] : mappings_) {
    if (each->is_refused()) return each->refusal();
  }
  return {};
}

}  // namespace ucx::detail
