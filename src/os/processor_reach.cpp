#include "os/processor_reach.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace ucx::detail {
namespace {

constexpr std::uintptr_t set_size = 8;      // of the system's set of signals
constexpr std::uintptr_t page_size = 4096;  // or more

/// Pages that the calling thread has found in reach since the last tick of the coarse clock, which
/// ticks every few milliseconds. A call takes a third of a microsecond on some machines, and small
/// messages come from the same pages.
class seen_pages {
 public:
  bool contains(std::uintptr_t page) noexcept {
    ::timespec now = {};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec != tick_.tv_sec || now.tv_nsec != tick_.tv_nsec) {
      tick_ = now;
      pages_ = {};
    }
    return std::find(pages_.begin(), pages_.end(), page) != pages_.end();
  }
  void add(std::uintptr_t page) noexcept { pages_[next_++ % pages_.size()] = page; }

 private:
  std::array<std::uintptr_t, 4> pages_ = {};
  unsigned next_ = 0;
  ::timespec tick_ = {};
};

bool ask_system(std::uintptr_t address) noexcept {
  // The system reads a set of signals there, and then finds that it was not told what to do with
  // it. Unlike reading this process from outside, that is forbidden nowhere.
  constexpr int nothing_to_do = ~0;
  const std::uintptr_t set = address & ~(set_size - 1);
  const int before = errno;
  const bool refused =
      ::syscall(SYS_rt_sigprocmask, nothing_to_do, set, nullptr, set_size) == -1 && errno == EFAULT;
  errno = before;
  return !refused;
}

}  // namespace

bool is_in_reach(const void* address) noexcept {
  thread_local seen_pages seen;
  const auto asked = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t page = asked / page_size + 1;  // 0 is no page
  if (seen.contains(page)) return true;
  const bool reached = ask_system(asked);
  if (reached) seen.add(page);
  return reached;
}

}  // namespace ucx::detail
