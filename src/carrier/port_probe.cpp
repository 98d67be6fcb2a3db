#include "carrier/port_probe.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>

#include "base/owned_descriptor.hpp"
#include "carrier/segment.hpp"
#include "os/dialled_socket.hpp"

namespace ucx::detail {

spoken spoken_at(const socket_address& port, std::chrono::milliseconds limit) noexcept {
  const auto until = std::chrono::steady_clock::now() + limit;
  const owned_descriptor socket = dial(port, until);
  if (!socket) return spoken::unknown;
  ::send(socket.get(), preamble::encoded.data(), preamble::size, MSG_NOSIGNAL);
  std::array<std::byte, preamble::size> said = {};
  if (await_socket(socket.get(), POLLIN, until) != 0) return spoken::unknown;
  const ::ssize_t come = ::recv(socket.get(), said.data(), said.size(), 0);
  const bool is_alert = come >= 2 && said[0] == std::byte{0x15} && said[1] == std::byte{0x03};
  if (is_alert) return spoken::tls;
  const bool is_whole = come == static_cast<::ssize_t>(said.size());
  return is_whole && preamble::look_at(said) != preamble::verdict::foreign ? spoken::clear
                                                                           : spoken::unknown;
}

}  // namespace ucx::detail
