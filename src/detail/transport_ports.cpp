#include "detail/transport_ports.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "detail/open_descriptors.hpp"
#include "detail/tcp_socket.hpp"

namespace ucx::detail {
namespace {

/// The length of a port, as it stands in front of it, and the bits beside it that say something
/// else.
constexpr std::byte port_length{2};
constexpr std::byte length_bits{0x3f};

/// Returns whether the address has this port, in network order, and its length in front.
bool tells(std::span<const std::byte> address, std::uint16_t port) noexcept {
  const std::array<std::byte, 2> wanted{static_cast<std::byte>(port >> 8U),
                                        static_cast<std::byte>(port & 0xffU)};
  for (std::size_t i = 1; i + wanted.size() <= address.size(); ++i) {
    if ((address[i - 1] & length_bits) != port_length) continue;
    if (address[i] == wanted[0] && address[i + 1] == wanted[1]) return true;
  }
  return false;
}

}  // namespace

std::vector<guarded_port> transport_ports(std::span<const std::byte> worker_address) {
  std::vector<guarded_port> found;
  each_descriptor([&](int number) {
    if (!tcp_socket::is_listening(number)) return;
    const socket_address local = tcp_socket::local(number);
    if (local.empty() || !tells(worker_address, local.port())) return;
    found.push_back({number, tcp_socket::number(number), local, false});
  });
  return found;
}

}  // namespace ucx::detail
