// How the owner of a device's memory shares it with other processes of the host.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "cuda/cuda_context.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {

/// Keeps what other processes need to find the memory: a handle of the driver's, or descriptors.
class cuda_share {
 public:
  cuda_share() noexcept = default;
  /// Shares `bytes`, which are a device's. Where the driver does not, why_not() says why.
  static cuda_share of(const cuda_context& context, std::span<const std::byte> bytes);

  /// Returns what peers find it by. Size 0: they do not.
  const cuda_ipc_handle& handle() const noexcept { return handle_; }
  const std::string& why_not() const noexcept { return why_not_; }

 private:
  void share(const cuda_driver& driver, std::span<const std::byte> bytes);
  void share_handle(const cuda_driver& driver, cuda::address first, std::size_t size);
  bool share_allocations(const cuda_driver& driver, cuda::address first, std::size_t size);
  bool share_pool(const cuda_driver& driver, cuda::pool pool, cuda::address first,
                  std::size_t size);
  bool failed(const cuda_driver& driver, const char* call, cuda::result said);
  bool failed(const char* why);

  cuda_ipc_handle handle_ = {};
  std::string why_not_;
  std::vector<owned_descriptor> files_;
  std::vector<std::byte> table_;  // its place is told to peers: a move keeps it
};

}  // namespace ucx::detail
