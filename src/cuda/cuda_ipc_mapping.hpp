// Memory of a device that another process allocated, mapped in a context of this one.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "cuda/device_copier.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {

/// The first copy opens it, because the driver may take long. It is closed where copies are made,
/// not by the thread that lets go of it last. Threads: sharing one object is safe.
class cuda_ipc_mapping {
 public:
  /// Of the region of `described`, in the context of `copier`, which its copies go by.
  static std::shared_ptr<cuda_ipc_mapping> make(const std::shared_ptr<device_copier>& copier,
                                                const remote_descriptor& described);
  cuda_ipc_mapping(const cuda_ipc_mapping&) = delete;
  cuda_ipc_mapping& operator=(const cuda_ipc_mapping&) = delete;
  ~cuda_ipc_mapping();

  /// Returns where the region begins; nothing where the driver does not let this process have it:
  /// asked once. REQUIRES: the context is current.
  std::byte* open() noexcept;
  /// Returns whether it does not.
  bool is_refused() const noexcept { return refused_.load(std::memory_order_acquire); }
  /// Returns what it said then.
  std::string refusal() const;
  const std::shared_ptr<const cuda_context>& context() const noexcept { return context_; }

 private:
  cuda_ipc_mapping(std::shared_ptr<const cuda_context> context,
                   const remote_descriptor& described) noexcept;
  void map() noexcept;
  bool holds_region() const noexcept;

  const std::shared_ptr<const cuda_context> context_;
  const cuda_ipc_handle handle_;
  const std::uint64_t size_;
  std::once_flag asked_;
  cuda::address opened_ = 0;
  cuda::result result_ = cuda::success;
  std::atomic<bool> refused_{false};
};

}  // namespace ucx::detail
