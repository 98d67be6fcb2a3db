#include "support/transports/network.hpp"
#include "support/basics/sanitizer.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "support/transports/ucx_server.hpp"

namespace ucx::test {
namespace {

std::string device() {
  const char* const named = std::getenv("UCXIO_RDMA_DEVICE");
  return named != nullptr ? named : "rxe0:1";
}

/// Returns the interface that a port of RDMA over Ethernet belongs to.
std::string interface_of(const std::string& device) {
  const std::size_t colon = device.find(':');
  const std::string port = colon == std::string::npos ? "1" : device.substr(colon + 1);
  std::ifstream file("/sys/class/infiniband/" + device.substr(0, colon) + "/ports/" + port +
                     "/gid_attrs/ndevs/0");
  std::string name;
  file >> name;
  if (name.empty()) throw std::runtime_error("UCXIO_ROUTE=verbs: no interface is of " + device);
  return name;
}

std::string address_of(const std::string& device) {
  for (const socket_address& each : interface_addresses(interface_of(device)))
    if (each.is_v4()) return each.host();
  throw std::runtime_error("UCXIO_ROUTE=verbs: no IPv4 address is of " + device);
}

}  // namespace

std::string network_name() {
  const char* const route = std::getenv("UCXIO_ROUTE");
  if (route == nullptr) return "tcp";
  for (const char* each : {"verbs", "socket", "tls", "unix"}) {
    if (std::string_view(route) == each) return each;
  }
  throw std::runtime_error(std::string("UCXIO_ROUTE: there is no route ") + route);
}

bool goes_over_verbs() { return network_name() == "verbs"; }
bool goes_over_unix() { return network_name() == "unix"; }
bool goes_over_sockets() {
  return network_name() == "socket" || network_name() == "tls" || goes_over_unix();
}

context_options over_network() {
  context_options options;
  if (goes_over_sockets()) {
    options.transports = {network_name() == "tls" ? "tls" : "socket"};
    return options;
  }
  if (!goes_over_verbs()) {
    options.transports = {"tcp"};
    options.devices = {"lo"};
    return options;
  }
  options.transports = {"rc", "ud", "self"};  // `ud` makes connections by worker address
  options.devices = {device()};
  options.configuration["SOCKADDR_TLS_PRIORITY"] = "rdmacm";
  return options;
}

std::string network_host() { return goes_over_verbs() ? address_of(device()) : "127.0.0.1"; }

socket_address any_port_of_network() {
  if (goes_over_unix()) return socket_address("unix:");
  return socket_address(network_host(), 0);
}

std::string at_port(std::uint16_t port) { return network_host() + ':' + std::to_string(port); }

server_options served_there(server_options options) {
  if (options.bind == server_options().bind) {
    options.bind = goes_over_unix() ? "unix:" : at_port();
  }
  if (goes_over_verbs()) options.insecure = true;  // another machine could connect, too
  options.worker = patient(options.worker);
  return by_ucx(std::move(options));
}

remote_region_options answered_by_the_owner() {
  remote_region_options options;
  if (goes_over_verbs()) options.transfer_method = transfer_method::message;
  return options;
}

std::chrono::nanoseconds patience(std::chrono::nanoseconds usual) {
  if (goes_over_verbs()) return usual * 12;
#if defined(UCXIO_WITH_TSAN)
  return usual * 3;
#else
  return usual;
#endif
}

worker_options patient(worker_options options) {
  const worker_options usual;
  const auto lengthen = [&](std::chrono::nanoseconds worker_options::*deadline) {
    if (options.*deadline == usual.*deadline) options.*deadline = patience(usual.*deadline);
  };
  lengthen(&worker_options::connect_timeout);
  lengthen(&worker_options::operation_timeout);
  lengthen(&worker_options::close_timeout);
  lengthen(&worker_options::heartbeat_interval);
  lengthen(&worker_options::heartbeat_timeout);
  return options;
}

}  // namespace ucx::test
