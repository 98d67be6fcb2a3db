// How many bytes a stream may have in flight, and has.
#pragma once

#include <cstddef>

namespace ucx::detail {

/// One for both directions of a stream. The side that starts a transfer takes its bytes, and gives
/// them back when they have arrived, or will not.
class byte_budget {
 public:
  explicit byte_budget(std::size_t bound) noexcept : bound_(bound) {}
  byte_budget(const byte_budget&) = delete;
  byte_budget& operator=(const byte_budget&) = delete;

  std::size_t bound() const noexcept { return bound_; }
  std::size_t used() const noexcept { return used_; }
  std::size_t left() const noexcept { return used_ < bound_ ? bound_ - used_ : 0; }

  void take(std::size_t bytes) noexcept { used_ += bytes; }
  void give_back(std::size_t bytes) noexcept { used_ -= bytes; }

 private:
  const std::size_t bound_;
  std::size_t used_ = 0;
};

}  // namespace ucx::detail
