#include "os/folder_lock.hpp"

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr std::chrono::seconds longest_wait_for_lock{2};
constexpr std::chrono::milliseconds between_tries_of_lock{10};

}  // namespace

std::error_code lock_folder(int descriptor) noexcept {
  const auto until = std::chrono::steady_clock::now() + longest_wait_for_lock;
  for (;;) {
    const bool is_last =
        std::chrono::steady_clock::now() >= until;  // tried once more after a stall
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return {};
    if (errno != EWOULDBLOCK && errno != EINTR) return {errno, std::generic_category()};
    if (is_last) return errc::busy;
    std::this_thread::sleep_for(between_tries_of_lock);
  }
}

bool has_no_locks(const std::error_code& why) noexcept {
  const int number = why.value();
  return why.category() == std::generic_category() &&
         (number == EBADF || number == ENOLCK || number == EOPNOTSUPP);
}

}  // namespace ucx::detail
