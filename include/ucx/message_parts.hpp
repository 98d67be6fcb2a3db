#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <vector>

#include "ucx/buffer.hpp"
#include "ucx/export.hpp"

namespace ucx {

namespace detail {
class landing_place;
}

/// The received parts of `payload::parts`: as many as were sent, with their lengths.
/// They lie without gaps in memory that was allocated for all of them together. The target of a
/// receive must stay in its place until the request is done. Its old parts go when the message
/// comes. They stay where the receive fails before that.
class UCXIO_EXPORT message_parts {
 public:
  /// Makes an object without parts.
  message_parts() noexcept = default;

  std::size_t size() const noexcept { return parts_.size(); }
  bool empty() const noexcept { return parts_.empty(); }
  /// Returns a part.
  /// Lifetime: the part's bytes, until this object dies, even if it moves.
  /// REQUIRES: `index` is below `size()`.
  std::span<std::byte> operator[](std::size_t index) noexcept { return parts_[index]; }
  std::span<const std::byte> operator[](std::size_t index) const noexcept { return parts_[index]; }

 private:
  friend class detail::landing_place;
  std::error_code find_parts() noexcept;

  buffer memory_;
  std::vector<std::span<std::byte>> parts_;
};

}  // namespace ucx
