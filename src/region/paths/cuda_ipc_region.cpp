#include "region/paths/cuda_ipc_region.hpp"

#include <unistd.h>

#include <cstdint>
#include <utility>

#include "worker/worker_core.hpp"

namespace ucx::detail {

cuda_ipc_region::cuda_ipc_region(const remote_descriptor& described,
                                 std::unique_ptr<cma_region> record) noexcept
    : described_(described), record_(std::move(record)) {}

std::unique_ptr<cuda_ipc_region> cuda_ipc_region::open(ucp_api& api,
                                                       const remote_descriptor& described,
                                                       std::string& why_not) {
  const cuda_ipc_handle& handle = described.cuda_ipc;
  const cuda_driver* const driver = cuda_driver::find();
  if (handle.size == 0) {
    why_not = "its owner does not share it with processes of its host";
  } else if (described.kind != memory_kind::cuda || handle.offset > handle.size ||
             described.size > handle.size - handle.offset) {
    why_not = "the descriptor contradicts itself";
  } else if (driver == nullptr || !driver->shares_memory()) {
    why_not = "there is no CUDA driver here that shares memory";
  } else if (std::unique_ptr<cma_region> record = cma_region::open(api, described, why_not)) {
    // The driver can not open a handle that this process made.
    if (described.cma.process != static_cast<std::uint64_t>(::getpid())) {
      return std::unique_ptr<cuda_ipc_region>(new cuda_ipc_region(described, std::move(record)));
    }
    why_not = "its owner is this process";
  }
  return nullptr;
}

std::shared_ptr<device_copier> cuda_ipc_region::copier_of_host(worker_core& worker) {
  if (!copier_of_host_ || copier_of_host_->failed()) {
    copier_of_host_ = worker.copiers().of_device_in_use(described_.device);
  }
  return copier_of_host_;
}

std::shared_ptr<cuda_ipc_mapping> cuda_ipc_region::mapping_for(
    const std::shared_ptr<device_copier>& copier) {
  std::shared_ptr<cuda_ipc_mapping>& found = mappings_[copier->context()->handle()];
  // Another context may have got the place of one that is over.
  if (!found || found->context() != copier->context())
    found = cuda_ipc_mapping::make(copier, described_);
  return found->is_refused() ? nullptr : found;
}

std::string cuda_ipc_region::refusal() const {
  for (const auto& [context, each] : mappings_) {
    if (each->is_refused()) return each->refusal();
  }
  return {};
}

}  // namespace ucx::detail
