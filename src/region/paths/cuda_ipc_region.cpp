#include "region/paths/cuda_ipc_region.hpp"

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cuda/cuda_fd_mapping.hpp"
#include "cuda/cuda_ipc_mapping.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

bool is_there_driver_for(const cuda_ipc_handle& handle) noexcept {
  const cuda_driver* const driver = cuda_driver::find();
  if (driver == nullptr) return false;
  if (!handle.by_descriptors) return driver->shares_memory();
  return driver->shares_allocations() || driver->shares_pools();
}

}  // namespace

cuda_ipc_region::cuda_ipc_region(const remote_descriptor& described,
                                 std::unique_ptr<cma_region> record)
    : described_(described), record_(std::move(record)) {}

std::unique_ptr<cuda_ipc_region> cuda_ipc_region::open(ucp_api& api,
                                                       const remote_descriptor& described,
                                                       std::string& why_not) {
  const cuda_ipc_handle& handle = described.cuda_ipc;
  if (handle.size == 0 && handle.by_descriptors) {
    why_not =
        "its owner can not share it: memory of a driver's pool (cudaMallocAsync) or of cuMemMap "
        "has to be made with CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR";
  } else if (handle.size == 0) {
    why_not = "its owner does not share it with processes of its host";
  } else if (described.kind != memory_kind::cuda || handle.offset > handle.size ||
             described.size > handle.size - handle.offset) {
    why_not = "the descriptor contradicts itself";
  } else if (!is_there_driver_for(handle)) {
    why_not = "there is no CUDA driver here that shares memory";
  } else if (std::unique_ptr<cma_region> record = cma_region::open(api, described, why_not)) {
    // The driver can not open a handle that this process made.
    if (described.cma.process == static_cast<std::uint64_t>(::getpid())) {
      why_not = "its owner is this process";
      return nullptr;
    }
    std::unique_ptr<cuda_ipc_region> made(new cuda_ipc_region(described, std::move(record)));
    if (!handle.by_descriptors || made->read_table(why_not)) return made;
  }
  return nullptr;
}

/// The table is checked against the handle now, and by the driver against the allocations.
bool cuda_ipc_region::read_table(std::string& why_not) {
  why_not = "the descriptor contradicts itself";
  const auto where = decode_cuda_fd_location(described_.cuda_ipc.bytes);
  if (!where) return false;
  std::vector<std::byte> read(static_cast<std::size_t>(where->length));
  if (!record_->read_from(where->address, read)) {
    why_not = "its owner does not tell by which descriptors it shares it";
    return false;
  }
  table_ = decode_cuda_fd_table(read);
  if (!table_ || table_->size() != described_.cuda_ipc.size) return false;
  const cuda_driver& driver = *cuda_driver::find();
  why_not = "the CUDA driver here shares no such memory";
  return table_->pointer ? driver.shares_pools() : driver.shares_allocations();
}

std::shared_ptr<device_copier> cuda_ipc_region::copier_of_host(worker_core& worker) {
  if (!copier_of_host_ || copier_of_host_->failed()) {
    copier_of_host_ = worker.copiers().of_device_in_use(described_.device);
  }
  return copier_of_host_;
}

std::shared_ptr<device_mapping> cuda_ipc_region::mapping_for(
    const std::shared_ptr<device_copier>& copier) {
  std::shared_ptr<device_mapping>& found = mappings_[copier->context()->handle()];
  // Another context may have got the place of one that is over.
  if (!found || found->context() != copier->context()) {
    found = table_ ? cuda_fd_mapping::make(copier, described_, *table_)
                   : cuda_ipc_mapping::make(copier, described_);
  }
  return found->is_refused() ? nullptr : found;
}

std::string cuda_ipc_region::refusal() const {
  for (const auto& [context, each] : mappings_) {
    if (each->is_refused()) return each->refusal();
  }
  return {};
}

}  // namespace ucx::detail
