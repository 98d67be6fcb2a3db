// Whatever a worker's epoll tells of.
#pragma once

#include <sys/epoll.h>

#include <cstdint>

namespace ucx::detail {

class carrier_source {
 public:
  carrier_source() = default;
  carrier_source(const carrier_source&) = delete;
  carrier_source& operator=(const carrier_source&) = delete;
  virtual ~carrier_source() = default;

  /// The system tells of `events` (EPOLLIN, ...).
  virtual void happened(std::uint32_t events) noexcept = 0;
};

}  // namespace ucx::detail
