// Descriptors that another process of this host has open.
#pragma once

#include <cstdint>

#include "base/owned_descriptor.hpp"

namespace ucx::detail {

/// The system decides as it does about reading the process's memory: `ptrace` rule. Needs Linux
/// 5.6.
class peer_descriptors {
 public:
  explicit peer_descriptors(std::uint64_t process) noexcept;

  /// Returns a duplicate of `number` there, which is closed on exec; none where that fails, and
  /// `errno` says why. Opening the entry in /proc would make another open file, without that which
  /// a device's driver has attached to the first.
  owned_descriptor duplicate(std::uint64_t number) const noexcept;

 private:
  owned_descriptor process_;
  int failure_ = 0;
};

}  // namespace ucx::detail
