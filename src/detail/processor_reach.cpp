#include "detail/processor_reach.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace ucx::detail {
namespace {

constexpr std::uintptr_t set_size = 8;  // of the system's set of signals

}  // namespace

bool is_in_reach(const void* address) noexcept {
  // The system reads a set of signals there, and then finds that it was not told what to do with
  // it. Unlike reading this process from outside, that is forbidden nowhere.
  constexpr int nothing_to_do = ~0;
  const std::uintptr_t set = reinterpret_cast<std::uintptr_t>(address) & ~(set_size - 1);
  const int before = errno;
  const bool refused =
      ::syscall(SYS_rt_sigprocmask, nothing_to_do, set, nullptr, set_size) == -1 && errno == EFAULT;
  errno = before;
  return !refused;
}

}  // namespace ucx::detail
