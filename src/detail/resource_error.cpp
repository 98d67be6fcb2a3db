#include "detail/resource_error.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>

#include "detail/status.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

std::error_code resource_error(ucs_status_t status) noexcept {
  const std::error_code plain = make_error(status);
  if (!plain) return plain;
  // UCX has closed what it had opened until it failed, so as many as it may have needed are tried.
  std::array<int, 32> probes;
  std::size_t opened = 0;
  bool exhausted = false;
  while (opened < probes.size() && !exhausted) {
    const int probe = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (probe >= 0) {
      probes[opened++] = probe;
    } else {
      exhausted = errno == EMFILE || errno == ENFILE;
      break;
    }
  }
  while (opened > 0) ::close(probes[--opened]);
  return exhausted ? make_error_code(errc::too_many_files) : plain;
}

std::uint64_t free_shared_memory() noexcept {
  struct ::statvfs shm = {};
  if (::statvfs("/dev/shm", &shm) != 0) return std::numeric_limits<std::uint64_t>::max();
  return std::uint64_t{shm.f_bavail} * shm.f_frsize;
}

std::error_code listen_error(const socket_address& address) noexcept {
  const int probe =
      ::socket(address.native()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int failure = probe < 0 ? errno : 0;
  if (probe >= 0) {
    const int on = 1;
    ::setsockopt(probe, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (::bind(probe, address.native(), address.native_size()) != 0 || ::listen(probe, 1) != 0) {
      failure = errno;
    }
    ::close(probe);
  }
  switch (failure) {
    case 0:
      return {};
    case EADDRNOTAVAIL:
      return errc::bad_address;
    default:
      return from_errno(failure);
  }
}

std::error_code memory_error(ucs_status_t status, bool allocating, bool shared) noexcept {
  if (status == UCS_OK) return {};
  const std::error_code plain = resource_error(status);
  if (plain == errc::too_many_files) return plain;
  if (allocating) {
    return shared && (status == UCS_ERR_NO_MEMORY || status == UCS_ERR_SHMEM_SEGMENT ||
                      status == UCS_ERR_NO_RESOURCE)
               ? make_error_code(errc::no_shared_memory)
               : plain;
  }
  // Registering pins pages; without the right to pin more, that is all that can fail.
  rlimit limit = {};
  const bool limited = ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited && (status == UCS_ERR_IO_ERROR || status == UCS_ERR_NO_MEMORY)
             ? make_error_code(errc::no_lockable_memory)
             : plain;
}

}  // namespace ucx::detail
