// The descriptors of this process: which there are, and how many are left.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

namespace ucx::detail {

/// Where the system has no descriptor left for a list, so many are tried.
inline constexpr ::rlim_t most_tried = ::rlim_t{1} << 20U;

/// Calls `take(number)` for each descriptor of the process, and maybe for others. Returns whether
/// that were all. Throws std::bad_alloc.
template <class Take>
bool each_descriptor(Take&& take) {
  std::error_code ec;
  std::filesystem::directory_iterator each("/proc/self/fd", ec);
  if (ec) {
    ::rlimit most = {};
    if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return false;
    const auto tried = static_cast<int>(std::min(most.rlim_cur, most_tried));
    for (int number = 0; number < tried; ++number) take(number);
    return most.rlim_cur <= most_tried;
  }
  for (; !ec && each != std::filesystem::directory_iterator(); each.increment(ec)) {
    const std::string name = each->path().filename();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    take(number);
  }
  return !ec;
}

struct descriptor_count {
  std::size_t limit = 0;
  std::size_t open = 0;
  std::size_t left() const noexcept { return limit > open ? limit - open : 0; }
};

/// Returns how many the process may have, and has. Cheap: it is asked for every knock.
descriptor_count count_descriptors() noexcept;

}  // namespace ucx::detail
