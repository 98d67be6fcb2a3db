#include "detail/network_device.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <filesystem>
#include <memory>
#include <system_error>

#include "detail/owned_descriptor.hpp"

namespace ucx::detail {
namespace {

/// Returns the interface that shows the address; where `lenient`, also one of loopback that has it
/// without showing it.
std::string interface_with(const socket_address& local, bool lenient = true) {
  ::ifaddrs* list = nullptr;
  // Without the list of interfaces a loopback address is still no reason to open the others.
  if (::getifaddrs(&list) != 0) return lenient && local.is_loopback() ? "lo" : std::string();
  const std::unique_ptr<::ifaddrs, void (*)(::ifaddrs*)> all(list, &::freeifaddrs);
  std::string loopback;
  for (const ::ifaddrs* each = list; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != local.native()->sa_family) {
      continue;
    }
    const ::socklen_t size =
        local.is_v4() ? ::socklen_t{sizeof(::sockaddr_in)} : ::socklen_t{sizeof(::sockaddr_in6)};
    std::error_code ec;
    const socket_address found = socket_address::from_native(each->ifa_addr, size, ec);
    if (!ec && found.host() == local.host()) return each->ifa_name;
    // All of 127.0.0.0/8 is local, not only the address that the interface shows.
    if ((each->ifa_flags & IFF_LOOPBACK) != 0) loopback = each->ifa_name;
  }
  return lenient && local.is_loopback() ? loopback : std::string();
}

}  // namespace

// The kernel's list: /sys/class/infiniband/DEVICE/ports/PORT.
std::vector<std::string> rdma_devices() {
  namespace fs = std::filesystem;
  std::vector<std::string> found;
  std::error_code ec;
  for (fs::directory_iterator device("/sys/class/infiniband", ec), end; !ec && device != end;
       device.increment(ec)) {
    std::error_code no_ports;
    for (fs::directory_iterator port(device->path() / "ports", no_ports);
         !no_ports && port != fs::directory_iterator(); port.increment(no_ports)) {
      found.push_back(device->path().filename().string() + ":" + port->path().filename().string());
    }
  }
  return found;
}

bool is_shown_by_interface(const socket_address& local) {
  return local.is_wildcard() || !interface_with(local, false).empty();
}

std::vector<std::string> devices_of(const socket_address& local) {
  if (local.empty() || local.is_wildcard()) return {};
  const std::string interface = interface_with(local);
  if (interface.empty()) return {};
  std::vector<std::string> devices;
  if (!local.is_loopback()) devices = rdma_devices();
  devices.insert(devices.begin(), interface);
  return devices;
}

socket_address source_towards(const socket_address& peer) {
  if (peer.empty()) return {};
  // A datagram socket that is "connected" has the source address that the route says.
  const owned_descriptor probe(::socket(peer.native()->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe) return {};
  ::sockaddr_storage storage = {};
  ::socklen_t size = sizeof storage;
  const bool routed =
      ::connect(probe.get(), peer.native(), peer.native_size()) == 0 &&
      ::getsockname(probe.get(), reinterpret_cast<::sockaddr*>(&storage), &size) == 0;
  if (!routed) return {};
  std::error_code ignored;
  return socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&storage), size, ignored);
}

std::vector<std::string> devices_towards(const socket_address& peer) {
  return devices_of(source_towards(peer));
}

}  // namespace ucx::detail
