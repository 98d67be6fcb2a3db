// Memory that another process of this host allocated, mapped here.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "base/owned_descriptor.hpp"
#include "ucp/shared_memory.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::detail {

/// Outlives the owner, and what the owner does with its end: then it keeps what was there last.
class shared_mapping {
 public:
  /// Maps what `described` says, for reading, and for writing if that is granted. Returns null
  /// where that fails, and `why_not` says why. The file is `passed` where the owner has passed one;
  /// else it is that of the owner's process. A hostile owner's descriptor opens nothing but a
  /// file in memory of the expected length, which can not be truncated. An owner that empties it
  /// meanwhile makes the reader take memory for what it touches.
  /// REQUIRES: `passed` is a file in memory.
  static std::unique_ptr<shared_mapping> open(const remote_descriptor& described,
                                              owned_descriptor passed, std::string& why_not);
  shared_mapping(const shared_mapping&) = delete;
  shared_mapping& operator=(const shared_mapping&) = delete;
  ~shared_mapping();

  std::byte* data() const noexcept { return data_; }
  /// Returns whether the owner has withdrawn it, or closed.
  bool withdrawn() const noexcept {
    return std::atomic_ref(stamp_->withdrawn).load(std::memory_order_acquire) != 0;
  }

 private:
  shared_mapping(std::uint64_t size, std::uint64_t stamp_size) noexcept
      : size_(size), stamp_size_(stamp_size) {}
  bool map(int file, bool writes) noexcept;

  std::uint64_t size_;  // of whole pages
  std::uint64_t stamp_size_;
  std::byte* data_ = nullptr;
  memory_stamp* stamp_ = nullptr;  // read only
};

}  // namespace ucx::detail
