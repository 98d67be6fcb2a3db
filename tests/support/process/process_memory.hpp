// What memory this process has, and others.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>
#include <string>

#include "support/basics/sanitizer.hpp"

namespace ucx::test {

/// Whether what is freed is given back, or used again: a sanitizer keeps it.
#if defined(UCXIO_WITH_ASAN) || defined(UCXIO_WITH_TSAN)
inline constexpr bool memory_is_measurable = false;
#else
inline constexpr bool memory_is_measurable = true;
#endif

/// Returns how many bytes of it are resident.
inline std::size_t resident_memory() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0;
  std::size_t pages = 0;
  statm >> total >> pages;
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

/// Returns how many bytes of another process were resident at most; 0 when it is gone.
inline std::size_t peak_memory(pid_t of) {
  std::ifstream status("/proc/" + std::to_string(of) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoul(line.substr(6)) * 1024;
  }
  return 0;
}

}  // namespace ucx::test
