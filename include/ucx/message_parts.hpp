#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

#include "ucx/buffer.hpp"
#include "ucx/export.hpp"

namespace ucx {

namespace detail {
class receive_operation;
}

/// What `endpoint::start_send_parts` sent, as it was received: as many parts as there were, of the
/// lengths that they had, in memory that was allocated for all of them together, without gaps.
/// As the target of a receive it must stay where it is until the request is done; what it held
/// before goes when the message comes, and is there still where the receive fails before that.
class UCXIO_EXPORT message_parts {
 public:
  /// Makes one without parts.
  message_parts() noexcept = default;

  std::size_t size() const noexcept { return parts_.size(); }
  bool empty() const noexcept { return parts_.empty(); }
  /// Returns a part.    Lifetime: its bytes, until this dies, also where it moves.
  /// REQUIRES: `index` is below `size()`.
  std::span<std::byte> operator[](std::size_t index) noexcept { return parts_[index]; }
  std::span<const std::byte> operator[](std::size_t index) const noexcept { return parts_[index]; }

 private:
  friend class detail::receive_operation;
  std::error_code find_parts() noexcept;

  buffer memory_;
  std::vector<std::span<std::byte>> parts_;
};

}  // namespace ucx
