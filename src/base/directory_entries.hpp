// The entries of a directory, read by system calls. std::filesystem's iterators end the process
// where there is no memory for them (libstdc++ 12).
#pragma once

#include <dirent.h>

#include <cerrno>
#include <memory>
#include <string_view>

namespace ucx::detail {

/// Calls `take(name)` for each entry but "." and ".."; returns an errno, or 0 where that were all.
template <class Take>
int each_entry(const char* directory, Take&& take) {
  struct closing {
    void operator()(::DIR* open) const noexcept { ::closedir(open); }
  };
  const std::unique_ptr<::DIR, closing> open(::opendir(directory));
  if (!open) return errno;
  for (;;) {
    errno = 0;
    const ::dirent* const found = ::readdir(open.get());  // NOLINT(concurrency-mt-unsafe): ours
    if (found == nullptr) return errno;
    const std::string_view name = found->d_name;
    if (name != "." && name != "..") take(name);
  }
}

}  // namespace ucx::detail
