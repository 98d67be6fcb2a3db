// Memory of a device that its owner's host may copy from, and to, where it lies:
// docs/reference/wire-format.md, "Region descriptor".
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cuda/device_mapping.hpp"
#include "region/paths/cma_region.hpp"
#include "ucx/remote_descriptor.hpp"
#include "wire/cuda_fd_table.hpp"

namespace ucx::detail {

class worker_core;

/// A descriptor is not trusted. Whatever it names, nothing is taken for the region unless the
/// owner's record is intact before and behind the copy. Under the worker's lock.
class cuda_ipc_region {
 public:
  /// Tries it on the record alone. Returns nothing where this can not be, and `why_not` says why.
  static std::unique_ptr<cuda_ipc_region> open(ucp_api& api, const remote_descriptor& described,
                                               std::string& why_not);

  /// Returns whether the owner lends it still.
  bool is_lent() noexcept { return record_->read(0, {}); }
  /// Returns a copier from and to the host's memory. It works in the primary context of a device in
  /// use: the region's device, or else another. Null where no device is in use.
  std::shared_ptr<device_copier> copier_of_host(worker_core& worker);
  /// Returns where it is, for copies by `copier`; nothing where the driver has refused that.
  std::shared_ptr<device_mapping> mapping_for(const std::shared_ptr<device_copier>& copier);
  /// Returns why the driver refused, the last time; nothing where it did not.
  std::string refusal() const;

 private:
  cuda_ipc_region(const remote_descriptor& described, std::unique_ptr<cma_region> record);
  bool read_table(std::string& why_not);

  const remote_descriptor described_;
  const std::unique_ptr<cma_region> record_;
  std::optional<cuda_fd_table> table_;  // where it is shared by descriptors
  std::map<cuda::context, std::shared_ptr<device_mapping>> mappings_;
  std::shared_ptr<device_copier> copier_of_host_;
};

}  // namespace ucx::detail
