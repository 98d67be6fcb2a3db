#include "carrier/own_flows.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <system_error>

#include "base/one_per_process.hpp"
#include "os/socket_lookup.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {
namespace {

constexpr std::size_t place_size = 18;

/// Writes the address in the form of IPv6, and the port.
bool put_place(const sockaddr_storage& of, std::span<std::byte, place_size> into) noexcept {
  if (of.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(of);
    std::memcpy(into.data(), &v6.sin6_addr, 16);
    std::memcpy(into.data() + 16, &v6.sin6_port, 2);
    return true;
  }
  if (of.ss_family != AF_INET) return false;
  const auto& v4 = reinterpret_cast<const sockaddr_in&>(of);
  std::fill_n(into.begin(), 10, std::byte{0});
  std::fill_n(into.begin() + 10, 2, std::byte{0xff});
  std::memcpy(into.data() + 12, &v4.sin_addr, 4);
  std::memcpy(into.data() + 16, &v4.sin_port, 2);
  return true;
}

/// An IPv4 address in the form of IPv6 is one of IPv4: the socket that has begun has no other.
socket_address address_of(const sockaddr_storage& place) noexcept {
  std::error_code none;
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(place);
  if (place.ss_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) {
    return socket_address::from_native(reinterpret_cast<const sockaddr*>(&place), sizeof place,
                                       none);
  }
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_port = v6.sin6_port;
  std::memcpy(&v4.sin_addr, v6.sin6_addr.s6_addr + 12, sizeof v4.sin_addr);
  return socket_address::from_native(reinterpret_cast<const sockaddr*>(&v4), sizeof v4, none);
}

constinit one_per_process<own_flows> flows;

}  // namespace

std::optional<tcp_flow> flow_of(const sockaddr_storage& from, const sockaddr_storage& to) noexcept {
  tcp_flow made = {};
  const std::span<std::byte, 2 * place_size> both(made);
  if (!put_place(from, both.first<place_size>()) || !put_place(to, both.last<place_size>())) {
    return std::nullopt;
  }
  return made;
}

own_flows& own_flows::of_process() { return flows.get(); }
own_flows* own_flows::find() noexcept { return flows.find(); }

void own_flows::add(const tcp_flow& begun, std::uint64_t socket) {
  const std::lock_guard guard(mutex_);
  sockets_.insert_or_assign(begun, socket);
}

void own_flows::remove(const tcp_flow& ending, std::uint64_t socket) noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = sockets_.find(ending);
  if (found != sockets_.end() && found->second == socket) sockets_.erase(found);
}

std::uint64_t own_flows::socket_of(const tcp_flow& flow) const noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = sockets_.find(flow);
  return found == sockets_.end() ? 0 : found->second;
}

bool own_flows::has(const sockaddr_storage& from, const sockaddr_storage& to) const noexcept {
  const std::optional<tcp_flow> flow = flow_of(from, to);
  const std::uint64_t socket = flow ? socket_of(*flow) : 0;
  return socket != 0 && socket_lookup().find(address_of(from), address_of(to)) == socket;
}

}  // namespace ucx::detail
