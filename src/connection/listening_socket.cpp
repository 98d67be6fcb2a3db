#include "connection/listening_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "os/greeting_filter.hpp"
#include "os/network_device.hpp"
#include "os/open_descriptors.hpp"
#include "os/rdma_port.hpp"
#include "os/tcp_socket.hpp"

namespace ucx::detail {
namespace {

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
  return tcp_socket::is_listening(descriptor) && tcp_socket::local(descriptor) == address_;
}

/// Returns whether it can be one that was let in here.
bool listening_socket::is_accepted(int descriptor) const noexcept {
  if (tcp_socket::option(descriptor, SO_ACCEPTCONN) != 0) return false;
  if (tcp_socket::option(descriptor, SO_TYPE) != SOCK_STREAM) return false;
  const socket_address local = tcp_socket::local(descriptor);
  const bool is_here = address_.is_wildcard()
                           ? local.port() == address_.port() && local.is_v6() == address_.is_v6()
                           : local == address_;
  return is_here && tcp_socket::was_connected(descriptor);
}

listening_socket::listening_socket(const socket_address& address, socket_lookup lookup)
    : address_(address), lookup_(std::move(lookup)) {
  if (address.port() == 0) return;
  all_are_known_ = each_descriptor([this](int number) {
    if (is_accepted(number)) known_.insert(tcp_socket::number(number));
  });
}

void listening_socket::close_on_exec() noexcept try {
  each_descriptor([this](int number) {
    if (listens(number)) ::fcntl(number, F_SETFD, FD_CLOEXEC);
  });
} catch (const std::bad_alloc&) {
  return;
}

std::vector<guarded_port> listening_socket::keep_strangers_out() noexcept try {
  std::vector<guarded_port> found;
  each_descriptor([&](int number) {
    if (!listens(number)) return;
    const std::uint64_t which = tcp_socket::number(number);
    tcp_socket::with_socket(number, which, [&](int held) {
      if (!listens(held)) return;
      found.push_back({number, which, address_, true});
      greeting_filter::attach(held);  // only where there is somebody to take it away
    });
  });
  all_come_by_sockets_ = !found.empty() && rdma_ports().empty();
  return found;
} catch (const std::bad_alloc&) {
  return {};
}

bool listening_socket::add_known(const socket_address& peer) noexcept try {
  if (!all_are_known_) return true;
  if (known_.size() >= most_known_) forget_gone();
  bool all_seen = false;
  const accepted found = accepted_from(peer, all_seen);
  if (found.number != 0) known_.insert(found.number);
  const bool is_gone = !found.is_there && all_seen;  // a peer that is gone already has no socket
  all_are_known_ = found.number != 0 || is_gone;
  if (is_gone && all_come_by_sockets_) return false;
  return found.received == 0 || found.received >= greeting_filter::least_greeting;
} catch (const std::bad_alloc&) {
  all_are_known_ = false;
  return true;
}

/// Returns the socket of this peer; none if there is none, or `all_seen` is false.
listening_socket::accepted listening_socket::accepted_from(const socket_address& peer,
                                                           bool& all_seen) {
  all_seen = !peer.empty();
  if (!all_seen) return {};
  // Where this is every address of the machine, the peer came to the one that leads to it, mostly.
  const socket_address local =
      address_.is_wildcard() ? source_towards(peer).with_port(address_.port()) : address_;
  if (const std::uint64_t told = lookup_.find(local, peer); told != 0) {
    return {true, told, lookup_.received()};
  }
  const auto facts_of = [](int number) {
    return accepted{true, tcp_socket::number(number), tcp_socket::received(number).value_or(0)};
  };
  const auto is_it = [&](int number) {
    return tcp_socket::peer(number) == peer && is_accepted(number);
  };
  // The system gives the lowest number that is free: mostly it is close below the next one.
  const owned_descriptor next(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  for (int number = next.get(); number-- > 0;) {
    if (is_it(number)) return facts_of(number);
  }
  accepted found;
  all_seen = each_descriptor([&](int number) {
    if (found.number != 0 || !is_it(number)) return;
    found = facts_of(number);
  });
  return found;
}

void listening_socket::forget_gone() {
  std::unordered_set<std::uint64_t> left;
  const bool all_seen = each_descriptor([&](int number) {
    if (is_accepted(number) && known_.contains(tcp_socket::number(number)))
      left.insert(tcp_socket::number(number));
  });
  if (all_seen) known_ = std::move(left);
  most_known_ = std::max(most_known_, 2 * known_.size());
}

void listening_socket::refuse() noexcept try {
  each_socket([this](int descriptor) { return listens(descriptor); },
              [](int descriptor) { tcp_socket::refuse(descriptor); });
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
    return is_accepted(descriptor) && !known_.contains(tcp_socket::number(descriptor));
  };
  const std::size_t missed = each_socket(is_unknown, [&](int descriptor) {
    ::shutdown(descriptor, SHUT_RDWR);
    ++found;
  });
  return found + missed;
} catch (const std::bad_alloc&) {
  return 0;
}

void listening_socket::end_unknown(std::span<const std::uint64_t> numbers) noexcept try {
  if (!all_are_known_) return;
  const std::unordered_set<std::uint64_t> asked(numbers.begin(), numbers.end());
  const auto is_meant = [&](int descriptor) {
    const std::uint64_t number = tcp_socket::number(descriptor);
    return number != 0 && asked.contains(number) && !known_.contains(number) &&
           is_accepted(descriptor);
  };
  each_socket(is_meant, [](int descriptor) { ::shutdown(descriptor, SHUT_RDWR); });
} catch (const std::bad_alloc&) {
  return;
}

}  // namespace ucx::detail
