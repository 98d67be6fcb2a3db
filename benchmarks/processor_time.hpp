// Processor time of whole processes, all their threads together.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <ctime>
#include <stdexcept>

namespace ucx::benchmarks {

inline std::chrono::nanoseconds processor_time(::clockid_t clock) {
  ::timespec used = {};
  if (::clock_gettime(clock, &used) != 0) {
    throw std::runtime_error("a process's processor time is not known");
  }
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

inline std::chrono::nanoseconds processor_time_of(::pid_t process) {
  ::clockid_t clock = {};
  if (::clock_getcpuclockid(process, &clock) != 0) {
    throw std::runtime_error("a process's processor time is not known");
  }
  return processor_time(clock);
}

inline std::chrono::nanoseconds own_processor_time() {
  return processor_time(CLOCK_PROCESS_CPUTIME_ID);
}

}  // namespace ucx::benchmarks
