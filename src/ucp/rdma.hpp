// Which of UCX's transports are hardware that reads and writes memory by itself.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace ucx::detail {

/// Returns whether `lane` ("rc_mlx5/mlx5_0:1") is of RDMA hardware.
inline bool is_rdma(std::string_view lane) noexcept {
  static constexpr std::array<std::string_view, 4> hardware{"rc_", "dc_", "ud_", "gga"};
  return std::any_of(hardware.begin(), hardware.end(),
                     [&](std::string_view prefix) { return lane.starts_with(prefix); });
}

inline bool any_is_rdma(const std::vector<std::string>& lanes) noexcept {
  return std::any_of(lanes.begin(), lanes.end(), [](const std::string& l) { return is_rdma(l); });
}

}  // namespace ucx::detail
