#include "ucp/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <new>

#include "os/huge_page.hpp"
#include "ucp/resource_error.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

#ifdef MFD_NOEXEC_SEAL
constexpr unsigned never_executable = MFD_NOEXEC_SEAL;
#else
constexpr unsigned never_executable = 8;  // of Linux 6.3
#endif
#ifdef MADV_POPULATE_WRITE
constexpr int populate_for_writing = MADV_POPULATE_WRITE;
#else
constexpr int populate_for_writing = 23;  // of Linux 5.14
#endif
#ifdef F_SEAL_FUTURE_WRITE
constexpr int no_more_writers = F_SEAL_FUTURE_WRITE;
#else
constexpr int no_more_writers = 0x0010;   // of Linux 5.1
#endif

/// Such files take a quarter of the process's descriptors at most. UCX needs some for every
/// connection, and ends processes that have none left.
constexpr ::rlim_t share_of_descriptors = 4;
/// They take a part of the mappings, too: a process has 65530, unless the system was set up
/// otherwise.
constexpr ::rlim_t most_files = 8192;

std::atomic<std::uint64_t> files{0};

bool claim_file() noexcept {
  ::rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  const ::rlim_t most = std::min(most_files, limit.rlim_cur / share_of_descriptors);
  if (files.fetch_add(1) < most) return true;
  files.fetch_sub(1);
  return false;
}

int make_file() noexcept {
  constexpr unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
  int file = ::memfd_create("ucxio", flags | never_executable);
  if (file < 0 && errno == EINVAL) file = ::memfd_create("ucxio", flags);
  // Another user that has it for reading must not open it again, for writing.
  if (file >= 0) ::fchmod(file, S_IRUSR | S_IWUSR);
  return file;
}

/// Returns whether a file may be as long: the system kills a process that makes a longer one.
bool may_be_as_long(std::uint64_t size) noexcept {
  ::rlimit limit = {};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && size <= limit.rlim_cur;
}

/// Takes the memory for a file of this length, which is mapped at `at`. Returns 0, or what `errno`
/// was.
int take_memory(int file, void* at, std::size_t length) noexcept {
  // By the mapping, which wants huge pages, and without a word where there is no memory: the file
  // itself knows of no wish.
  if (length >= huge_page) ::madvise(at, length, populate_for_writing);
  while (::fallocate(file, 0, 0, static_cast<::off_t>(length)) != 0) {
    if (errno != EINTR) return errno;  // else a signal came
  }
  return 0;
}

std::uint64_t page_size() noexcept {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

std::uint64_t memory_stamp_offset(std::uint64_t size) noexcept {
  return (size + page_size() - 1) / page_size() * page_size();
}

std::uint64_t memory_file_size(std::uint64_t size) noexcept {
  return memory_stamp_offset(size) + page_size();
}

result<std::unique_ptr<shared_memory>> shared_memory::make(std::uint64_t size, bool peers_write,
                                                           std::uint64_t incarnation,
                                                           std::uint64_t region) {
  const auto none = [](const char* why) { return failure{errc::not_supported, why}; };
  // The system would rather kill processes than refuse pages of such a file.
  if (size > largest_memory_file || memory_file_size(size) > available_memory()) {
    return failure{errc::no_memory};
  }
  if (!may_be_as_long(memory_file_size(size))) {
    return none("files may not be so long; raise the limit (ulimit -f)");
  }
  if (!claim_file()) {
    return none(
        "the process has as many such files as it may: a quarter of its descriptors (ulimit -n), "
        "8192 at most");
  }
  const int file = make_file();
  std::unique_ptr<shared_memory> made;
  if (file >= 0) made.reset(new (std::nothrow) shared_memory(file, memory_file_size(size)));
  if (!made) {
    if (file >= 0) ::close(file);
    files.fetch_sub(1);
    return none("the system has no file for it in memory");
  }
  const int failed = made->commit();
  if (failed == ENOMEM || failed == ENOSPC) return failure{errc::no_memory};
  if (failed != 0) return none("the system does not map such a file");
  made->stamp(incarnation, region);
  const bool usable = made->seal(peers_write) && made->locate();
  if (!usable) return none("the system does not seal such a file");
  return made;
}

/// Maps the file, and takes the memory for all of it. Returns 0, or what `errno` was.
int shared_memory::commit() noexcept {
  if (::ftruncate(file_, static_cast<::off_t>(size_)) != 0) return errno;
  void* const mapped = map_aligned(size_, PROT_READ | PROT_WRITE, file_);
  if (mapped == MAP_FAILED) return errno == ENOMEM ? EMFILE : errno;  // of mappings
  const int failed = take_memory(file_, mapped, size_);
  if (failed != 0) {
    ::munmap(mapped, size_);
    return failed;
  }
  data_ = static_cast<std::byte*>(mapped);
  return 0;
}

void shared_memory::stamp(std::uint64_t incarnation, std::uint64_t region) noexcept {
  auto* const behind = reinterpret_cast<memory_stamp*>(data_ + size_ - page_size());
  *behind = {memory_stamp::expected_mark, incarnation, region, 0};
}

/// Of a file that peers may only read, this process's mapping stays the only one that writes.
bool shared_memory::seal(bool peers_write) noexcept {
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW | (peers_write ? 0 : no_more_writers);
  return ::fcntl(file_, F_ADD_SEALS, seals | F_SEAL_SEAL) == 0;
}

bool shared_memory::locate() noexcept {
  struct ::stat found = {};
  if (::fstat(file_, &found) != 0) return false;
  location_.process = static_cast<std::uint64_t>(::getpid());
  location_.descriptor = static_cast<std::uint64_t>(file_);
  location_.device = found.st_dev;
  location_.inode = found.st_ino;
  return true;
}

/// The system lets a process open its own descriptors again, also with `PR_SET_DUMPABLE` 0.
owned_descriptor shared_memory::reopen(bool writes) const noexcept {
  std::array<char, 40> name = {};
  std::snprintf(name.data(), name.size(), "/proc/self/fd/%d", file_);
  return owned_descriptor(::open(name.data(), (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC));
}

shared_memory::~shared_memory() {
  if (data_ != nullptr) {
    auto* const stamp = reinterpret_cast<memory_stamp*>(data_ + size_ - page_size());
    // A child that was forked does not speak for the owner.
    if (location_.process == static_cast<std::uint64_t>(::getpid())) {
      std::atomic_ref(stamp->withdrawn).store(1, std::memory_order_release);
    }
    ::munmap(data_, size_);
  }
  ::close(file_);
  files.fetch_sub(1);
}

}  // namespace ucx::detail
