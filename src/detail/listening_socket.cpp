#include "detail/listening_socket.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "detail/network_device.hpp"
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

/// Returns whether it was ever connected: one that the peer has reset has no name of a peer any
/// more.
bool was_connected(int descriptor) noexcept {
  if (!name_of(descriptor, &::getpeername).empty()) return true;
  ::tcp_info known = {};
  ::socklen_t size = sizeof known;
  return ::getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &known, &size) == 0 &&
         known.tcpi_segs_in > 0;
}

/// Returns the number of a socket, which no other one gets; 0 if that can not be had.
std::uint64_t number_of(int descriptor) noexcept {
  std::uint64_t cookie = 0;
  ::socklen_t size = sizeof cookie;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) == 0 ? cookie : 0;
}

/// Where the system has no descriptor left for a list, so many are tried.
constexpr ::rlim_t most_tried = ::rlim_t{1} << 20U;

/// Calls `take(number)` for each descriptor of the process, and maybe for others. Returns whether
/// that were all.
template <class Take>
bool each_descriptor(Take&& take) {
  std::error_code ec;
  std::filesystem::directory_iterator each("/proc/self/fd", ec);
  if (ec) {
    ::rlimit most = {};
    if (::getrlimit(RLIMIT_NOFILE, &most) != 0) return false;
    const auto tried = static_cast<int>(std::min(most.rlim_cur, most_tried));
    for (int number = 0; number < tried; ++number) take(number);
    return most.rlim_cur <= most_tried;
  }
  for (; !ec && each != std::filesystem::directory_iterator(); each.increment(ec)) {
    const std::string name = each->path().filename();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    take(number);
  }
  return !ec;
}

/// Calls `take(descriptor)` with another descriptor of each socket that `matches`: the number of
/// the first may be another file's by then. Returns how many it could not be called for.
template <class Matches, class Take>
std::size_t each_socket(Matches&& matches, Take&& take) {
  std::size_t missed = 0;
  each_descriptor([&](int number) {
    if (!matches(number)) return;
    const owned_descriptor held(::fcntl(number, F_DUPFD_CLOEXEC, 0));
    if (!held && errno != EBADF) ++missed;
    if (held && matches(held.get())) take(held.get());
  });
  return missed;
}

}  // namespace

bool listening_socket::listens(int descriptor) const noexcept {
  return option_of(descriptor, SO_ACCEPTCONN) == 1 &&
         name_of(descriptor, &::getsockname) == address_;
}

/// Returns whether it can be one that was let in here.
bool listening_socket::is_accepted(int descriptor) const noexcept {
  if (option_of(descriptor, SO_ACCEPTCONN) != 0) return false;
  if (option_of(descriptor, SO_TYPE) != SOCK_STREAM) return false;
  const socket_address local = name_of(descriptor, &::getsockname);
  const bool is_here = address_.is_wildcard()
                           ? local.port() == address_.port() && local.is_v6() == address_.is_v6()
                           : local == address_;
  return is_here && was_connected(descriptor);
}

listening_socket::listening_socket(const socket_address& address, socket_lookup lookup)
    : address_(address), lookup_(std::move(lookup)) {
  if (address.port() == 0) return;
  all_are_known_ = each_descriptor([this](int number) {
    if (is_accepted(number)) known_.insert(number_of(number));
  });
}

void listening_socket::close_on_exec() noexcept try {
  each_descriptor([this](int number) {
    if (listens(number)) ::fcntl(number, F_SETFD, FD_CLOEXEC);
  });
} catch (const std::bad_alloc&) {
  return;
}

void listening_socket::add_known(const socket_address& peer) noexcept try {
  if (!all_are_known_) return;
  if (known_.size() >= most_known_) forget_gone();
  bool all_seen = false;
  const std::uint64_t found = accepted_from(peer, all_seen);
  if (found != 0) known_.insert(found);
  all_are_known_ = found != 0 || all_seen;  // a peer that is gone already has no socket
} catch (const std::bad_alloc&) {
  all_are_known_ = false;
}

/// Returns the number of the socket of this peer; 0 if there is none, or `all_seen` is false.
std::uint64_t listening_socket::accepted_from(const socket_address& peer, bool& all_seen) {
  all_seen = !peer.empty();
  if (!all_seen) return 0;
  // Where this is every address of the machine, the peer came to the one that leads to it, mostly.
  const socket_address local =
      address_.is_wildcard() ? source_towards(peer).with_port(address_.port()) : address_;
  if (const std::uint64_t told = lookup_.find(local, peer); told != 0) return told;
  const auto is_it = [&](int number) {
    return name_of(number, &::getpeername) == peer && is_accepted(number);
  };
  // The system gives the lowest number that is free: mostly it is close below the next one.
  const owned_descriptor next(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (int number = next.get(); number-- > 0;) {
    if (is_it(number)) return number_of(number);
  }
  std::uint64_t found = 0;
  all_seen = each_descriptor([&](int number) {
    if (found == 0 && is_it(number)) found = number_of(number);
  });
  return found;
}

void listening_socket::forget_gone() {
  std::unordered_set<std::uint64_t> left;
  const bool all_seen = each_descriptor([&](int number) {
    if (is_accepted(number) && known_.contains(number_of(number))) left.insert(number_of(number));
  });
  if (all_seen) known_ = std::move(left);
  most_known_ = std::max(most_known_, 2 * known_.size());
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
  if (!all_are_known_) return 0;
  std::size_t found = 0;
  const auto is_unknown = [this](int descriptor) {
    return is_accepted(descriptor) && !known_.contains(number_of(descriptor));
  };
  const std::size_t missed = each_socket(is_unknown, [&](int descriptor) {
    ::shutdown(descriptor, SHUT_RDWR);
    ++found;
  });
  return found + missed;
} catch (const std::bad_alloc&) {
  return 0;
}

}  // namespace ucx::detail
