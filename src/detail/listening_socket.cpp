#include "detail/listening_socket.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "detail/owned_descriptor.hpp"

namespace ucx::detail {
namespace {

using asks_name = int (*)(int, ::sockaddr*, ::socklen_t*);

/// Returns what ::getsockname or ::getpeername says; an empty address if nothing.
socket_address name_of(int descriptor, asks_name ask) noexcept {
  ::sockaddr_storage found = {};
  ::socklen_t size = sizeof found;
  if (ask(descriptor, reinterpret_cast<::sockaddr*>(&found), &size) != 0) return {};
  std::error_code ignored;  // a socket of another family
  return socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&found), size, ignored);
}

int option_of(int descriptor, int option) noexcept {
  int value = 0;
  ::socklen_t size = sizeof value;
  return ::getsockopt(descriptor, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
}

/// Calls `take(number)` for each descriptor of the process.
template <class Take>
void each_descriptor(Take&& take) {
  std::error_code ec;
  std::filesystem::directory_iterator each("/proc/self/fd", ec);
  for (; !ec && each != std::filesystem::directory_iterator(); each.increment(ec)) {
    const std::string name = each->path().filename();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    take(number);
  }
}

/// Calls `take(descriptor)` with another descriptor of each socket that `matches`: the number of
/// the first may be another file's by then.
template <class Matches, class Take>
void each_socket(Matches&& matches, Take&& take) {
  each_descriptor([&](int number) {
    if (!matches(number)) return;
    const owned_descriptor held(::fcntl(number, F_DUPFD_CLOEXEC, 0));
    if (held && matches(held.get())) take(held.get());
  });
}

}  // namespace

bool listening_socket::listens(int descriptor) const noexcept {
  return option_of(descriptor, SO_ACCEPTCONN) == 1 &&
         name_of(descriptor, &::getsockname) == address_;
}

/// Returns whether it is one that was let in here.
bool listening_socket::is_accepted(int descriptor) const noexcept {
  if (option_of(descriptor, SO_ACCEPTCONN) != 0) return false;
  const socket_address local = name_of(descriptor, &::getsockname);
  if (address_.is_wildcard()) {
    return local.port() == address_.port() && local.is_v6() == address_.is_v6();
  }
  return local == address_;
}

void listening_socket::close_on_exec() noexcept try {
  each_descriptor([this](int number) {
    if (listens(number)) ::fcntl(number, F_SETFD, FD_CLOEXEC);
  });
} catch (const std::bad_alloc&) {
  return;
}

void listening_socket::add_known(const socket_address& peer) {
  if (known_.size() >= most_known_) forget_gone();
  known_.insert(peer);
}

void listening_socket::forget_gone() {
  std::unordered_set<socket_address> left;
  each_socket([this](int descriptor) { return is_accepted(descriptor); },
              [&](int descriptor) {
                const socket_address peer = name_of(descriptor, &::getpeername);
                if (known_.contains(peer)) left.insert(peer);
              });
  most_known_ = std::max(most_known_, 2 * left.size());
  known_ = std::move(left);
}

void listening_socket::refuse() noexcept try {
  ::sock_filter none = BPF_STMT(BPF_RET | BPF_K, 0);  // of each packet
  const ::sock_fprog program{1, &none};
  each_socket([this](int descriptor) { return listens(descriptor); },
              [&](int descriptor) {
                ::setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
              });
} catch (const std::bad_alloc&) {
  return;
}

bool listening_socket::has_waiting() const noexcept try {
  bool found = false;
  each_socket([this](int descriptor) { return listens(descriptor); },
              [&](int descriptor) {
                ::pollfd waiting{descriptor, POLLIN, 0};
                found = ::poll(&waiting, 1, 0) > 0 || found;
              });
  return found;
} catch (const std::bad_alloc&) {
  return false;
}

std::size_t listening_socket::end_unknown() noexcept try {
  std::size_t found = 0;
  each_socket([this](int descriptor) { return is_accepted(descriptor); },
              [&](int descriptor) {
                if (known_.contains(name_of(descriptor, &::getpeername))) return;
                ::shutdown(descriptor, SHUT_RDWR);
                ++found;
              });
  return found;
} catch (const std::bad_alloc&) {
  return 0;
}

}  // namespace ucx::detail
