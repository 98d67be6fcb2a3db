#include "support/transports/network.hpp"

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

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

bool goes_over_verbs() {
  const char* const route = std::getenv("UCXIO_ROUTE");
  if (route == nullptr) return false;
  if (std::string_view(route) == "verbs") return true;
  throw std::runtime_error(std::string("UCXIO_ROUTE: there is no route ") + route);
}

std::string network_name() { return goes_over_verbs() ? "verbs" : "tcp"; }

context_options over_network() {
  context_options options;
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

socket_address any_port_of_network() { return socket_address(network_host(), 0); }

std::string at_port(std::uint16_t port) { return network_host() + ':' + std::to_string(port); }

server_options served_there(server_options options) {
  if (options.bind == server_options().bind) options.bind = at_port();
  if (goes_over_verbs()) options.insecure = true;  // another machine could connect, too
  options.worker = patient(options.worker);
  return options;
}

std::chrono::nanoseconds patience(std::chrono::nanoseconds usual) {
  return goes_over_verbs() ? usual * 12 : usual;
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
