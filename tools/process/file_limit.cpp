#include "process/file_limit.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace ucx::tool {
namespace {

/// Some systems grant a thousand million.
constexpr ::rlim_t most_files = ::rlim_t{1} << 20U;

}  // namespace

void raise_limit_of_files() noexcept {
  ::rlimit files = {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const ::rlim_t granted = std::min(files.rlim_max, most_files);
  if (files.rlim_cur >= granted) return;
  files.rlim_cur = granted;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace ucx::tool
