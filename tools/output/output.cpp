#include "output/output.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <system_error>

#include "output/exit_code.hpp"

namespace ucx::tool {
namespace {

/// Writes all of `bytes`. Returns 0, or errno's value.
int write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno == EAGAIN) {
      // Another process, which shares the descriptor, made it non-blocking.
      ::pollfd writable = {descriptor, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

[[noreturn]] void fail(int error) {
  if (error == EPIPE || error == EBADF) throw output_closed();
  throw failure(exit_code::output, "cannot write to the standard output: " +
                                       std::error_code(error, std::generic_category()).message());
}

}  // namespace

void keep_standard_descriptors() noexcept {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // Open for the other direction, so that using it fails as it would if it were closed.
    const int taken = ::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    static_cast<void>(taken);  // the lowest that is free: this one
  }
}

void write_out(std::string_view bytes) {
  if (const int error = write_all(STDOUT_FILENO, bytes); error != 0) fail(error);
}

void say(std::string_view bytes) noexcept { write_all(STDERR_FILENO, bytes); }

bool output_is_closed() noexcept {
  ::pollfd output = {STDOUT_FILENO, 0, 0};
  return ::poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

bool output_is_file() noexcept {
  struct ::stat about = {};
  if (::fstat(STDOUT_FILENO, &about) != 0 || ::isatty(STDOUT_FILENO) == 1) return false;
  return S_ISREG(about.st_mode) || S_ISBLK(about.st_mode) || S_ISCHR(about.st_mode);
}

void close_output() {
  if (::close(STDOUT_FILENO) != 0 && errno != EINTR) fail(errno);
}

}  // namespace ucx::tool
