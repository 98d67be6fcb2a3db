#pragma once

#include <utility>

#include "ucx/export.hpp"

namespace ucx {

/// A descriptor of the system that is closed with this object.
class UCXIO_EXPORT file_descriptor {
 public:
  /// Holds no descriptor.
  file_descriptor() noexcept = default;
  /// Owns `opened` from now on; -1 is no descriptor.
  explicit file_descriptor(int opened) noexcept : descriptor_(opened) {}
  file_descriptor(file_descriptor&& other) noexcept : descriptor_(other.release()) {}
  file_descriptor& operator=(file_descriptor&& other) noexcept;
  ~file_descriptor();

  explicit operator bool() const noexcept { return descriptor_ >= 0; }
  /// Returns the descriptor, or -1.
  /// Lifetime: this object's.
  int get() const noexcept { return descriptor_; }
  /// Returns the descriptor, and leaves it to the caller.
  int release() noexcept { return std::exchange(descriptor_, -1); }

 private:
  int descriptor_ = -1;
};

}  // namespace ucx
