// Which of UCX's transports a name stands for, and what kind they are of.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace ucx::detail {

/// Returns whether `name`, as it may stand in a list of transports, stands for `transport`: its own
/// name, or a group's. "rc" is "rc_verbs" and "rc_mlx5" (`ucp_tl_aliases` of UCX 1.22).
inline bool stands_for(std::string_view name, std::string_view transport) noexcept {
  using member = std::pair<std::string_view, std::string_view>;  // a group, and the begin of names
  static constexpr std::array<member, 34> members{{
      {"mm", "posix"},      {"mm", "sysv"},      {"mm", "xpmem"},      {"sm", "posix"},
      {"sm", "sysv"},       {"sm", "xpmem"},     {"sm", "knem"},       {"sm", "cma"},
      {"shm", "posix"},     {"shm", "sysv"},     {"shm", "xpmem"},     {"shm", "knem"},
      {"shm", "cma"},       {"ib", "rc_"},       {"ib", "ud_"},        {"ib", "dc_"},
      {"ib", "gga_"},       {"ib", "srd"},       {"rc", "rc_verbs"},   {"rc", "rc_mlx5"},
      {"rc_v", "rc_verbs"}, {"rc_x", "rc_mlx5"}, {"ud", "ud_"},        {"ud_v", "ud_verbs"},
      {"ud_x", "ud_mlx5"},  {"dc", "dc_mlx5"},   {"dc_x", "dc_mlx5"},  {"gga", "gga_mlx5"},
      {"ugni", "ugni_"},    {"cuda", "cuda_"},   {"cuda", "gdr_copy"}, {"rocm", "rocm_"},
      {"ze", "ze_"},        {"gaudi", "gaudi_"},
  }};
  return name == transport || name == "all" ||
         std::any_of(members.begin(), members.end(), [&](const member& each) {
           return each.first == name && transport.starts_with(each.second);
         });
}

/// Returns whether `transport` is of one host.
inline bool is_same_host(std::string_view transport) noexcept {
  static constexpr std::array<std::string_view, 9> names{"posix", "sysv", "cma", "self", "xpmem",
                                                         "knem",  "shm",  "sm",  "mm"};
  return std::find(names.begin(), names.end(), transport) != names.end();
}

/// Returns whether `transport` has network devices: those of accelerators are none.
inline bool is_of_network(std::string_view transport) noexcept {
  static constexpr std::array<std::string_view, 5> accelerators{"cuda_", "gdr_", "rocm_", "ze_",
                                                                "gaudi_"};
  return !is_same_host(transport) &&
         std::none_of(accelerators.begin(), accelerators.end(),
                      [&](std::string_view each) { return transport.starts_with(each); });
}

}  // namespace ucx::detail
