#include "detail/open_descriptors.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <limits>

namespace ucx::detail {
namespace {

/// A process that may have more than these is not short of them for being looked at.
constexpr std::size_t most_counted = 65'536;

}  // namespace

descriptor_count count_descriptors() noexcept {
  descriptor_count made;
  ::rlimit most = {};
  if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return {most_counted, 0};
  made.limit = most.rlim_cur == RLIM_INFINITY ? std::numeric_limits<int>::max()
                                              : static_cast<std::size_t>(most.rlim_cur);
  struct ::stat list = {};
  if (::stat("/proc/self/fd", &list) == 0 && list.st_size > 0) {  // Linux 6.2
    made.open = static_cast<std::size_t>(list.st_size);
    return made;
  }
  const auto counted = static_cast<int>(std::min(made.limit, most_counted));
  for (int number = 0; number < counted; ++number) {
    if (::fcntl(number, F_GETFD) >= 0) ++made.open;
  }
  return made;
}

}  // namespace ucx::detail
