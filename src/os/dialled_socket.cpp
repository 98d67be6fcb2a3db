#include "os/dialled_socket.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

namespace ucx::detail {

int await_socket(int descriptor, short events,
                 std::chrono::steady_clock::time_point until) noexcept {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return ETIMEDOUT;
    ::pollfd waited{descriptor, events, 0};
    const int found = ::poll(&waited, 1, static_cast<int>(left.count()));
    if (found > 0) return 0;
    if (found < 0 && errno != EINTR) return errno;
  }
}

owned_descriptor dial(const socket_address& to,
                      std::chrono::steady_clock::time_point until) noexcept {
  const int family = to.is_v4() ? AF_INET : AF_INET6;
  owned_descriptor made(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!made || ::connect(made.get(), to.native(), to.native_size()) == 0) return made;
  int error = errno;
  if (error == EINPROGRESS) {
    error = await_socket(made.get(), POLLOUT, until);
    ::socklen_t size = sizeof error;
    if (error == 0) ::getsockopt(made.get(), SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error == 0) return made;
  made = owned_descriptor();
  errno = error;
  return made;
}

}  // namespace ucx::detail
