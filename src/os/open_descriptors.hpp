// The descriptors of this process: which there are, and how many are left.
#pragma once

#include <poll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "base/directory_entries.hpp"

namespace ucx::detail {

/// Where the system has no descriptor left for a list, so many are tried.
inline constexpr ::rlim_t most_tried = ::rlim_t{1} << 20U;

/// Calls `take(number)` for each descriptor of the process from `first` on and before `end`, asking
/// the system of many at once. Returns false where it does not tell.
template <class Take>
bool each_open(int first, int end, Take&& take) {
  constexpr int at_once = 256;
  std::array<::pollfd, at_once> asked = {};
  for (; first < end; first += at_once) {
    const int count = std::min(end - first, at_once);
    for (int i = 0; i < count; ++i) asked[static_cast<std::size_t>(i)] = {first + i, 0, 0};
    if (::poll(asked.data(), static_cast<::nfds_t>(count), 0) < 0) return false;
    for (int i = 0; i < count; ++i) {
      if ((asked[static_cast<std::size_t>(i)].revents & POLLNVAL) == 0) take(first + i);
    }
  }
  return true;
}

/// Calls `take(number)` for each descriptor of the process, and maybe for others. Returns whether
/// that were all. Throws what `take` throws.
template <class Take>
bool each_descriptor(Take&& take) {
  bool listed = false;
  const int failed = each_entry("/proc/self/fd", [&](std::string_view name) {
    listed = true;
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    take(number);
  });
  if (failed == 0 || listed) return failed == 0;
  ::rlimit most = {};
  if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return false;
  const auto tried = static_cast<int>(std::min(most.rlim_cur, most_tried));
  return each_open(0, tried, take) && most.rlim_cur <= most_tried;
}

struct descriptor_count {
  std::size_t limit = 0;
  std::size_t open = 0;
  std::size_t left() const noexcept { return limit > open ? limit - open : 0; }
};

/// Where more than these are left, the open ones are not counted exactly.
inline constexpr std::size_t most_counted = 65'536;

/// Returns how many the process may have, and has, or more where `most_counted` are left all the
/// same. Cheap: it is asked for every knock.
descriptor_count count_descriptors() noexcept;
/// Returns how large the system's table of them is, and no higher one is open; 0: not known.
std::size_t size_of_table() noexcept;
/// Counts where the system does not, as before Linux 6.2; `size` is its table's.
descriptor_count count_by_asking(std::size_t limit, std::size_t size) noexcept;

}  // namespace ucx::detail
