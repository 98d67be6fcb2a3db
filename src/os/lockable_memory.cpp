#include "os/lockable_memory.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>

namespace ucx::detail {
namespace {

/// Returns how much of the process's memory registrations keep in place. The system holds that
/// number against the limit, and apart from what mlock() has locked.
std::uint64_t pinned_bytes() noexcept {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen("/proc/self/status", "re"), [](std::FILE* each) { return std::fclose(each); });
  if (!file) return 0;
  char line[256];
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    unsigned long long kilobytes = 0;
    if (std::sscanf(line, "VmPin: %llu kB", &kilobytes) == 1) return kilobytes * 1024;
  }
  return 0;
}

/// Returns whether the limit is none for this process. The system asks for CAP_IPC_LOCK in its
/// first user namespace. In another one a process seems to have it, and it is worth nothing. So
/// this locks more than the limit, none of which has to be there.
bool exceeds_limit(std::uint64_t limit) noexcept {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (limit > std::numeric_limits<std::size_t>::max() - 2 * page) return true;
  const auto size = static_cast<std::size_t>((limit / page + 1) * page);
  void* const room =
      ::mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return false;
  const bool refused = ::mlock2(room, size, MLOCK_ONFAULT) != 0 &&
                       (errno == ENOMEM || errno == EPERM || errno == EAGAIN);
  ::munmap(room, size);
  return !refused;
}

}  // namespace

bool may_lock(std::size_t bytes) noexcept {
  ::rlimit limit = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  const std::uint64_t pinned = pinned_bytes();
  if (pinned <= limit.rlim_cur && bytes <= limit.rlim_cur - pinned) return true;
  return exceeds_limit(limit.rlim_cur);
}

}  // namespace ucx::detail
