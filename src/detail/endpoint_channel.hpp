// Control messages over UCX: a frame carries each.
#pragma once

#include "detail/channel.hpp"

namespace ucx::detail {

/// REQUIRES: the endpoint outlives it, or ended() has been called.
class endpoint_channel final : public channel {
 public:
  /// Messages are no longer than this, and fit one segment of the transport.
  static constexpr std::size_t most = std::size_t{64} << 10U;

  explicit endpoint_channel(endpoint_core& endpoint) noexcept : endpoint_(endpoint) {}

  void send(std::span<const std::byte> message) override;
  std::size_t longest() const noexcept override;
  std::size_t unsent() const noexcept override;
  void blame(std::error_code why, const std::string& words) override;

 private:
  endpoint_core& endpoint_;
};

}  // namespace ucx::detail
