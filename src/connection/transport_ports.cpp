#include "connection/transport_ports.hpp"

#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "os/open_descriptors.hpp"
#include "os/tcp_socket.hpp"

namespace ucx::detail {
namespace {

/// The length of a port, as it stands in front of it, and the bits beside it that say something
/// else.
constexpr std::byte port_length{2};
constexpr std::byte length_bits{0x3f};
constexpr std::byte device_length_bits{0x1f};

/// A loopback device's address consists of flags, the family, and two numbers: for this machine,
/// and for the network namespace. The latter has 8 bytes in older versions of UCX, and 4 later.
constexpr std::array<std::size_t, 2> loopback_lengths{18, 14};

/// A device's port is told so many bytes behind the beginning of the device's address at most.
/// Between them are IPv6, or what stands for the machine, and what UCX says of the speed. The next
/// device's port is farther off.
constexpr std::size_t longest_device = 42;

/// Returns whether these bytes have this port, in network order, and its length in front.
bool has_port(std::span<const std::byte> address, std::uint16_t port) noexcept {
  const std::array<std::byte, 2> wanted{static_cast<std::byte>(port >> 8U),
                                        static_cast<std::byte>(port & 0xffU)};
  for (std::size_t i = 1; i + wanted.size() <= address.size(); ++i) {
    if ((address[i - 1] & length_bits) != port_length) continue;
    if (address[i] == wanted[0] && address[i + 1] == wanted[1]) return true;
  }
  return false;
}

/// Returns the bytes by which UCX tells peers of a device with this IP address. They are flags, the
/// family, and the address itself, but for that of a loopback device.
std::vector<std::byte> device_of(const socket_address& local) {
  constexpr std::byte loopback{1};
  std::vector<std::byte> made{local.is_loopback() ? loopback : std::byte{0},
                              static_cast<std::byte>(local.native()->sa_family)};
  if (local.is_loopback()) return made;
  const auto append = [&](const auto& ip) {
    const auto bytes = std::as_bytes(std::span(&ip, 1));
    made.insert(made.end(), bytes.begin(), bytes.end());
  };
  if (local.is_v4()) {
    append(reinterpret_cast<const ::sockaddr_in*>(local.native())->sin_addr);
  } else {
    append(reinterpret_cast<const ::sockaddr_in6*>(local.native())->sin6_addr);
  }
  return made;
}

/// Returns whether the length of a device's address is told in front of it. It is there at once, or
/// in front of the device's number of paths, and place in the system.
bool has_length(std::span<const std::byte> in_front,
                std::span<const std::size_t> lengths) noexcept {
  constexpr std::size_t farthest = 3;
  const auto near = in_front.last(std::min(in_front.size(), farthest));
  return std::any_of(near.begin(), near.end(), [&](std::byte each) {
    const auto told = std::to_integer<std::size_t>(each & device_length_bits);
    return std::find(lengths.begin(), lengths.end(), told) != lengths.end();
  });
}

}  // namespace

bool tells_port(std::span<const std::byte> address, const socket_address& local) {
  const std::vector<std::byte> device = device_of(local);
  const std::size_t own_length = device.size();
  const std::span<const std::size_t> lengths =
      local.is_loopback() ? std::span(loopback_lengths) : std::span(&own_length, 1);
  for (auto from = address.begin();; ++from) {
    from = std::search(from, address.end(), device.begin(), device.end());
    if (from == address.end()) return false;
    const auto place = static_cast<std::size_t>(from - address.begin());
    if (!has_length(address.first(place), lengths)) continue;
    const auto rest = address.subspan(place);
    const auto own = rest.first(std::min(rest.size(), longest_device)).subspan(device.size());
    if (has_port(own, local.port())) return true;
  }
}

std::vector<guarded_port> transport_ports(std::span<const std::byte> worker_address) {
  std::vector<guarded_port> found;
  each_descriptor([&](int number) {
    if (!tcp_socket::is_listening(number)) return;
    const socket_address local = tcp_socket::local(number);
    if (local.empty() || !tells_port(worker_address, local)) return;
    found.push_back({number, tcp_socket::number(number), local, false});
  });
  return found;
}

}  // namespace ucx::detail
