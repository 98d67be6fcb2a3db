#include <dirent.h>
#include <dlfcn.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "support/replaced/counted_calls.hpp"
#include "support/replaced/failing_calls.hpp"

namespace {

std::atomic<int> failing{-1};  // which
std::atomic<int> error_number{0};
std::atomic<int> left_to_spare{0};
std::atomic<std::uint64_t> getpeernames{0};
std::atomic<std::uint64_t> polls{0};
std::atomic<std::uint64_t> readdirs{0};

bool fails(ucx::test::disk_call which) noexcept {
  if (failing.load() != static_cast<int>(which) || left_to_spare.fetch_sub(1) > 0) return false;
  errno = error_number.load();
  return true;
}

template <class Function>
Function* next(const char* name) noexcept {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

// In place of the C library's.
extern "C" {

struct dirent* readdir(DIR* directory) {
  static auto* const real = next<struct dirent*(DIR*)>("readdir");
  readdirs.fetch_add(1);
  return fails(ucx::test::disk_call::readdir) ? nullptr : real(directory);
}

int fsync(int descriptor) {
  static auto* const real = next<int(int)>("fsync");
  return fails(ucx::test::disk_call::fsync) ? -1 : real(descriptor);
}

int flock(int descriptor, int operation) noexcept {
  static auto* const real = next<int(int, int)>("flock");
  return fails(ucx::test::disk_call::flock) ? -1 : real(descriptor, operation);
}

int getpeername(int descriptor, sockaddr* address, socklen_t* size) noexcept {
  static auto* const real = next<int(int, sockaddr*, socklen_t*)>("getpeername");
  getpeernames.fetch_add(1);
  return real(descriptor, address, size);
}

int poll(pollfd* asked, nfds_t count, int limit) {
  static auto* const real = next<int(pollfd*, nfds_t, int)>("poll");
  polls.fetch_add(1);
  return real(asked, count, limit);
}

}  // extern "C"

namespace ucx::test {

failing_calls::failing_calls(disk_call which, int number, int spared) noexcept {
  error_number.store(number);
  left_to_spare.store(spared);
  failing.store(static_cast<int>(which));
}

failing_calls::~failing_calls() { failing.store(-1); }

std::uint64_t getpeername_calls() noexcept { return getpeernames.load(); }
std::uint64_t poll_calls() noexcept { return polls.load(); }
std::uint64_t readdir_calls() noexcept { return readdirs.load(); }

}  // namespace ucx::test
