// Memory of a device that another process has, mapped in a context of this one.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>

#include "cuda/device_copier.hpp"

namespace ucx::detail {

/// The first copy opens it, because the driver may take long. It is closed where copies are made,
/// not by the thread that lets go of it last. Threads: sharing one object is safe.
class device_mapping {
 public:
  device_mapping(const device_mapping&) = delete;
  device_mapping& operator=(const device_mapping&) = delete;
  virtual ~device_mapping() = default;

  /// Returns where the region begins; nothing where this process can not have it: asked once.
  /// REQUIRES: the context is current.
  std::byte* open() noexcept;
  /// Returns whether it can not.
  bool is_refused() const noexcept { return refused_.load(std::memory_order_acquire); }
  /// Returns what was said then.
  virtual std::string refusal() const = 0;
  const std::shared_ptr<const cuda_context>& context() const noexcept { return context_; }

 protected:
  explicit device_mapping(std::shared_ptr<const cuda_context> context) noexcept;
  /// Has it end on the thread of `copier`, whose copies go by it.
  static std::shared_ptr<device_mapping> closed_by(const std::shared_ptr<device_copier>& copier,
                                                   std::unique_ptr<device_mapping> made);

 private:
  /// Does it; null where that fails.
  virtual std::byte* map() noexcept = 0;

  const std::shared_ptr<const cuda_context> context_;
  std::once_flag asked_;
  std::byte* begin_ = nullptr;
  std::atomic<bool> refused_{false};
};

}  // namespace ucx::detail
