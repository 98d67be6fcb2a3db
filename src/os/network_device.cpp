#include "os/network_device.hpp"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "os/device_name.hpp"

namespace ucx::detail {
namespace {

/// An address of IPv4 may have its own label, "eth0:backup", which the system shows as its
/// interface's name.
std::string interface_of_label(std::string_view label) {
  return std::string(label.substr(0, label.find(':')));
}

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
    if (!ec && found.host() == local.host()) return interface_of_label(each->ifa_name);
    // All of 127.0.0.0/8 is local, not only the address that the interface shows.
    if ((each->ifa_flags & IFF_LOOPBACK) != 0) loopback = each->ifa_name;
  }
  return lenient && local.is_loopback() ? loopback : std::string();
}

/// Returns whether the port has an address of the interface, or may have one.
bool is_of(const rdma_port& port, const std::string& interface) {
  const std::vector<std::string>& all = port.interfaces;
  return all.empty() || std::find(all.begin(), all.end(), interface) != all.end();
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& each : names) text.append(text.empty() ? "" : " and ").append(each);
  return text;
}

}  // namespace

bool is_shown_by_interface(const socket_address& local) {
  return local.is_wildcard() || !interface_with(local, false).empty();
}

device_limit devices_of(const socket_address& local, const std::vector<rdma_port>& ports) {
  if (local.empty()) return {{}, "no address is known"};
  if (local.is_wildcard()) return {{}, to_string(local) + " is of every interface"};
  const std::string interface = interface_with(local);
  if (interface.empty()) return {{}, "no interface shows the address " + local.host()};
  device_limit found{{interface}, local.host() + " is on the interface " + interface};
  if (local.is_loopback()) {
    found.why += ", and RDMA devices are not for loopback";
  } else {
    for (const rdma_port& each : ports) {
      if (!each.is_usable()) continue;
      if (!is_of(each, interface)) {
        found.others.push_back({each.name, "it is on the network of " + joined(each.interfaces) +
                                               ", and " + local.host() + " on that of " +
                                               interface});
      } else if (found.devices.size() < most_devices) {
        found.devices.push_back(each.name);
      }
    }
  }
  return found;
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

device_limit devices_towards(const socket_address& peer) {
  const socket_address source = source_towards(peer);
  if (source.empty() && !peer.empty()) return {{}, "there is no route to " + peer.host()};
  return devices_of(source);
}

}  // namespace ucx::detail
