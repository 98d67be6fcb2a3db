#include "os/peer_descriptors.hpp"

#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

namespace ucx::detail {

peer_descriptors::peer_descriptors(std::uint64_t process) noexcept {
#ifdef SYS_pidfd_open
  if (process == 0 || process > std::numeric_limits<::pid_t>::max()) {
    failure_ = ESRCH;
    return;
  }
  process_ = owned_descriptor(
      static_cast<int>(::syscall(SYS_pidfd_open, static_cast<::pid_t>(process), 0)));
  if (!process_) failure_ = errno;
#else
  static_cast<void>(process);
  failure_ = ENOSYS;
#endif
}

owned_descriptor peer_descriptors::duplicate(std::uint64_t number) const noexcept {
  int failure = failure_;
  owned_descriptor made;
#ifdef SYS_pidfd_getfd
  if (failure == 0 && number <= std::numeric_limits<int>::max()) {
    made = owned_descriptor(
        static_cast<int>(::syscall(SYS_pidfd_getfd, process_.get(), static_cast<int>(number), 0)));
    if (made) return made;
    failure = errno;
  }
  if (failure == 0) failure = EBADF;
#else
  if (failure == 0) failure = ENOSYS;
  static_cast<void>(number);
#endif
  errno = failure;
  return made;
}

}  // namespace ucx::detail
