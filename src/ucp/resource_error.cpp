#include "ucp/resource_error.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

#include "ucp/rdma.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

namespace {

constexpr std::size_t most_probes = 32;

/// Connecting takes sockets for the connection manager and the data, and one to ask for interfaces.
constexpr std::size_t files_to_connect = 3;

/// UCX's pools grow by eight buffers: of one of our segments to send, of two to receive.
constexpr std::size_t memory_to_connect = std::size_t{26} << 20U;

/// Returns whether the process can not open `wanted` more descriptors.
bool lacks_files(std::size_t wanted) noexcept {
  std::array<int, most_probes> probes;
  std::size_t opened = 0;
  bool exhausted = false;
  while (opened < std::min(wanted, probes.size()) && !exhausted) {
    const int probe = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (probe >= 0) {
      probes[opened++] = probe;
    } else {
      exhausted = errno == EMFILE || errno == ENFILE;
      break;
    }
  }
  while (opened > 0) ::close(probes[--opened]);
  return exhausted;
}

/// Returns whether `status` may mean that UCX could not open a file, a socket or an event set, or
/// could not look for devices.
bool may_lack_files(ucs_status_t status) noexcept {
  switch (status) {
    case UCS_ERR_IO_ERROR:
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_NO_RESOURCE:
    case UCS_ERR_NO_DEVICE:
    case UCS_ERR_EXCEEDS_LIMIT:
    case UCS_ERR_SHMEM_SEGMENT:
    case UCS_ERR_NO_ELEM:
      return true;
    default:
      return false;
  }
}

/// Registering pins pages; without the right to pin more, that is all that can fail.
bool may_lack_locked_memory(ucs_status_t status) noexcept {
  rlimit limit = {};
  const bool limited = ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited && (status == UCS_ERR_IO_ERROR || status == UCS_ERR_NO_MEMORY);
}

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();

/// Returns the number behind `key` in a file of such pairs, or the first one of a file without
/// keys.
std::uint64_t number_in(const char* path, std::string_view key = {}) {
  std::ifstream file(path);
  std::string word;
  while (!key.empty() && file >> word && word != key) {
  }
  std::uint64_t number = 0;
  return file >> number ? number : unlimited;  // "max" is no number either
}

/// Returns the memory that a container has left; pages of files count as free.
std::uint64_t left_of(const char* limit, const char* used, const char* details,
                      std::initializer_list<const char*> files) {
  const std::uint64_t most = number_in(limit);
  const std::uint64_t taken = number_in(used);
  if (most == unlimited || taken == unlimited) return unlimited;
  std::uint64_t needed = taken;
  for (const char* const key : files) {
    const std::uint64_t cached = number_in(details, key);
    if (cached != unlimited) needed -= std::min(needed, cached);
  }
  return needed < most ? most - needed : 0;
}

}  // namespace

std::uint64_t available_memory() noexcept {
  try {
    const std::uint64_t machine = number_in("/proc/meminfo", "MemAvailable:");
    const std::uint64_t swap = number_in("/proc/meminfo", "SwapFree:");
    const std::uint64_t of_machine =
        machine == unlimited ? unlimited : (machine + (swap == unlimited ? 0 : swap)) * 1024;
    // Control groups, version 2 and 1, as a container sees its own.
    const std::uint64_t second =
        left_of("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                "/sys/fs/cgroup/memory.stat", {"inactive_file", "active_file", "slab_reclaimable"});
    const std::uint64_t first =
        left_of("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat",
                {"total_inactive_file", "total_active_file"});
    return std::min({of_machine, first, second});
  } catch (...) {  // out of memory for a word
    return unlimited;
  }
}

std::error_code resource_error(ucs_status_t status) noexcept {
  // UCX has closed what it had opened until it failed, so as many as it may have needed are tried.
  return may_lack_files(status) && lacks_files(most_probes) ? make_error_code(errc::too_many_files)
                                                            : make_error(status);
}

std::error_code worker_error(ucs_status_t status, const std::vector<std::string>& resources) {
  const std::error_code plain = resource_error(status);
  if (plain == errc::too_many_files) return plain;
  const bool short_of_it = status == UCS_ERR_NO_MEMORY || status == UCS_ERR_SHMEM_SEGMENT ||
                           status == UCS_ERR_NO_RESOURCE;
  const bool takes_it =
      std::any_of(resources.begin(), resources.end(),
                  [](const std::string& each) { return each.starts_with("posix/"); });
  if (short_of_it && takes_it && free_shared_memory() < ample_shared_memory) {
    return errc::no_shared_memory;
  }
  return any_is_rdma(resources) && may_lack_locked_memory(status)
             ? make_error_code(errc::no_lockable_memory)
             : plain;
}

bool lacks_memory_to_connect() noexcept {
  void* const room = ::mmap(nullptr, memory_to_connect, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return room == MAP_FAILED || ::munmap(room, memory_to_connect) != 0;
}

std::error_code connect_error() noexcept {
  if (lacks_files(files_to_connect)) return errc::too_many_files;
  return lacks_memory_to_connect() ? make_error_code(errc::no_memory) : std::error_code();
}

std::uint64_t longest_file() noexcept {
  rlimit limit = {};
  const bool known = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known ? limit.rlim_cur : unlimited;
}

std::uint64_t free_shared_memory() noexcept {
  struct ::statvfs shm = {};
  if (::statvfs("/dev/shm", &shm) != 0) return longest_file();
  return std::min(std::uint64_t{shm.f_bavail} * shm.f_frsize, longest_file());
}

std::error_code listen_error(ucp_api& api, const socket_address& address) {
  switch (const int failure = api.try_listen(address.native(), address.native_size())) {
    case 0:
      return {};
    case EADDRNOTAVAIL:
      return errc::bad_address;
    default:
      return from_errno(failure);
  }
}

std::string words_of_lack_to_lock() {
  return words_of_lock_limit() + ", and RDMA needs " +
         std::to_string(memory_locked_by_worker >> 20U) +
         " MiB more: allow it by `ulimit -l unlimited`, in a container by --ulimit memlock=-1";
}

std::string words_of_lock_limit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "the limit of locked memory is not known";
  if (limit.rlim_cur == RLIM_INFINITY) return "the process may lock any memory that it may write";
  return "the process may lock " + std::to_string(limit.rlim_cur) + " bytes, see ulimit -l";
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
  return may_lack_locked_memory(status) ? make_error_code(errc::no_lockable_memory) : plain;
}

}  // namespace ucx::detail
