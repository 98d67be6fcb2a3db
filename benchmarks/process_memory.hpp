// The memory of another process.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <stdexcept>
#include <string>

namespace ucx::benchmarks {

/// Returns how much of its memory is resident.
inline double resident_kilobytes_of(::pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    double kilobytes = 0;
    if (word == "VmRSS:" && status >> kilobytes) return kilobytes;
  }
  throw std::runtime_error("a process's memory is not known");
}

}  // namespace ucx::benchmarks
