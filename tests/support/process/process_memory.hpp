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

/// Returns the bytes that the system tells of a process by this name; 0 when it is gone.
inline std::size_t memory_of(pid_t process, const std::string& name) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name + ":")) return std::stoul(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

/// Returns how many bytes of another process were resident at most.
inline std::size_t peak_memory(pid_t of) { return memory_of(of, "VmHWM"); }

/// Returns how many bytes are resident that a process shares with no other.
inline std::size_t private_memory(pid_t of) { return memory_of(of, "RssAnon"); }

}  // namespace ucx::test
