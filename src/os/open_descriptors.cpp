#include "os/open_descriptors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <limits>
#include <string_view>

#include "base/owned_descriptor.hpp"

namespace ucx::detail {

std::size_t size_of_table() noexcept {
  const owned_descriptor status(::open("/proc/self/status", O_RDONLY | O_CLOEXEC));
  std::array<char, 4096> text = {};
  const ::ssize_t got = status ? ::read(status.get(), text.data(), text.size()) : 0;
  const std::string_view all(text.data(), static_cast<std::size_t>(std::max<::ssize_t>(got, 0)));
  constexpr std::string_view key = "\nFDSize:\t";
  const std::size_t at = all.find(key);
  std::size_t size = 0;
  if (at != all.npos) {
    std::from_chars(all.data() + at + key.size(), all.data() + all.size(), size);
  }
  return size;
}

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
  return count_by_asking(made.limit, size_of_table());
}

descriptor_count count_by_asking(std::size_t limit, std::size_t size) noexcept {
  descriptor_count made{limit, size};
  if (size != 0 && made.left() >= most_counted) return made;
  made.open = 0;
  // From above: the system gives the lowest ones first. Behind so many that are free there may be
  // as many as there can.
  const std::size_t highest = size == 0 ? limit : std::min(limit, size);
  std::size_t unasked = highest;
  constexpr std::size_t at_once = 4096;
  while (unasked > 0 && limit - unasked - made.open < most_counted) {
    const std::size_t from = unasked - std::min(unasked, at_once);
    const auto count = [&](int) { ++made.open; };
    if (!each_open(static_cast<int>(from), static_cast<int>(unasked), count)) break;
    unasked = from;
  }
  made.open += unasked;
  return made;
}

}  // namespace ucx::detail
