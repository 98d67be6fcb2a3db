// Memory of a device that another process shares by descriptors.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "cuda/device_mapping.hpp"
#include "os/peer_descriptors.hpp"
#include "ucx/remote_descriptor.hpp"
#include "wire/cuda_fd_table.hpp"

namespace ucx::detail {

class imported_pool_memory;

/// Allocations of `cuMemCreate`, one behind the other, or memory of a pool. Neither is of a context
/// or ends with one.
class cuda_fd_mapping final : public device_mapping {
 public:
  /// Of the region of `described`, whose owner tells `table`, in the context of `copier`.
  /// REQUIRES: the region lies within the table's size.
  static std::shared_ptr<device_mapping> make(const std::shared_ptr<device_copier>& copier,
                                              const remote_descriptor& described,
                                              cuda_fd_table table);
  ~cuda_fd_mapping() override;
  std::string refusal() const override;

 private:
  cuda_fd_mapping(std::shared_ptr<const cuda_context> context, const remote_descriptor& described,
                  cuda_fd_table table) noexcept;
  std::byte* map() noexcept override;
  bool map_allocations(const peer_descriptors& owner) noexcept;
  bool map_part(const peer_descriptors& owner, const cuda_fd_table::part& part) noexcept;
  bool allow() noexcept;
  bool map_pool(const peer_descriptors& owner) noexcept;
  owned_descriptor take(const peer_descriptors& owner, const cuda_fd_table::part& part) noexcept;
  bool succeeded(const char* call, cuda::result said) noexcept;
  bool failed(const char* why) noexcept;
  void unmap() noexcept;

  const cuda_fd_table table_;
  const std::uint64_t process_;
  const std::uint64_t offset_;
  const ::pid_t mapped_in_;
  cuda::address begin_ = 0;
  std::uint64_t reserved_ = 0;  // so many bytes
  std::uint64_t mapped_ = 0;    // so many of them, in whole parts
  std::shared_ptr<imported_pool_memory> pool_;
  // Why not: a call of the driver's and what it said, or what the system said, or just a text.
  cuda::result said_ = cuda::success;
  int errno_ = 0;
  const char* call_ = "";
};

}  // namespace ucx::detail
