#include "connection/transport_ports.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "os/open_descriptors.hpp"
#include "os/tcp_socket.hpp"
#include "ucx/context.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {
namespace {

using bytes = std::vector<std::byte>;

bytes of(std::initializer_list<int> values) {
  bytes made;
  for (const int each : values) made.push_back(static_cast<std::byte>(each));
  return made;
}

bytes operator+(bytes a, const bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// As UCX has them in the address of a worker: a device, what it says of its speed, and a port
/// behind its length.
bytes loopback_device() { return of({0x80 | 18, 1, AF_INET}) + bytes(16, std::byte{0x5a}); }
bytes device_v6(const std::string& ip) {
  bytes made = of({18, 0, AF_INET6}) + bytes(16);
  EXPECT_EQ(::inet_pton(AF_INET6, ip.c_str(), &made[3]), 1);
  return made;
}
bytes device(const std::string& ip) {
  bytes made = of({0x40 | 6, 1, 9, 0, AF_INET, 0, 0, 0, 0});
  EXPECT_EQ(::inet_pton(AF_INET, ip.c_str(), &made[5]), 1);
  return made;
}
bytes port(std::uint16_t number, int flags = 0) {
  return bytes(18, std::byte{0x77}) + of({flags | 2, number >> 8, number & 0xff});
}

class TransportPorts : public testing::Test {
 protected:
  TransportPorts() : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const socket_address any("127.0.0.1:0");
    EXPECT_EQ(::bind(listening_.get(), any.native(), any.native_size()), 0);
    EXPECT_EQ(::listen(listening_.get(), 1), 0);
    port_ = tcp_socket::local(listening_.get()).port();
  }

  /// Returns whether the socket is among those of a worker with this address.
  bool is_found(const bytes& address) const {
    for (const guarded_port& each : transport_ports(address)) {
      if (each.descriptor != listening_.get()) continue;
      EXPECT_EQ(each.number, tcp_socket::number(listening_.get()));
      EXPECT_FALSE(each.greets);
      return true;
    }
    return false;
  }

  owned_descriptor listening_;
  std::uint16_t port_ = 0;
};

TEST_F(TransportPorts, AreThoseOfTheDevicesOfTheAddress) {
  EXPECT_TRUE(is_found(of({9, 9}) + loopback_device() + port(port_)));
  EXPECT_TRUE(is_found(loopback_device() + port(port_, 0x80))) << "with a flag beside the length";
  EXPECT_TRUE(is_found(device("10.1.2.3") + port(7) + loopback_device() + port(port_)));
  EXPECT_FALSE(is_found(loopback_device() + port(static_cast<std::uint16_t>(port_ + 1))));
  EXPECT_FALSE(is_found({}));
}

TEST_F(TransportPorts, AreNotThoseOfOtherAddresses) {
  EXPECT_FALSE(is_found(device("10.1.2.3") + port(port_)));
  EXPECT_FALSE(is_found(device("127.0.0.1") + port(port_))) << "as UCX says that of no device";
  EXPECT_FALSE(is_found(loopback_device() + port(7) + device("10.1.2.3") + port(port_)));
  EXPECT_FALSE(is_found(device("10.1.2.3") + port(port_) + loopback_device()));
}

TEST(TransportPort, IsToldBehindTheAddressOfItsDevice) {
  const bytes all = loopback_device() + port(7) + device("10.1.2.3") + port(8) +
                    device_v6("2001:db8::1") + port(9, 0x80);
  for (const char* const own : {"127.0.0.1:7", "10.1.2.3:8", "[2001:db8::1]:9"}) {
    EXPECT_TRUE(tells_port(all, socket_address(own))) << own;
  }
  for (const char* const other : {"127.0.0.1:8", "10.1.2.3:7", "10.1.2.3:9", "10.1.2.4:8",
                                  "[2001:db8::1]:8", "[2001:db8::2]:9", "[::1]:9", "0.0.0.0:8"}) {
    EXPECT_FALSE(tells_port(all, socket_address(other))) << other;
  }
  const bytes later = device("10.1.2.3") + port(7) + of({14, 1, AF_INET}) + bytes(12) + port(8);
  EXPECT_TRUE(tells_port(later, socket_address("127.0.0.1:8")));
  // As it stands in the middle of something else.
  EXPECT_FALSE(
      tells_port(of({9, 9, 9, 0, AF_INET, 10, 1, 2, 3}) + port(8), socket_address("10.1.2.3:8")));
}

std::set<int> listening() {
  std::set<int> found;
  each_descriptor([&](int number) {
    if (tcp_socket::is_listening(number)) found.insert(number);
  });
  return found;
}

TEST_F(TransportPorts, AreAllThatAWorkerListensAt) {
  for (const std::string family : {"inet", "inet6"}) {
    context_options options;
    options.configuration = {{"TLS", "tcp"}, {"TCP_AF_PRIO", family}};
    const context own(options);
    const std::set<int> before = listening();
    const worker driven(own);
    std::set<int> found;
    for (const guarded_port& each : transport_ports(driven.address().native())) {
      found.insert(each.descriptor);
      EXPECT_NE(each.address.port(), 0);
    }
    std::set<int> expected = listening();
    std::erase_if(expected, [&](int number) { return before.contains(number); });
    EXPECT_TRUE(family == "inet6" || !expected.empty()) << "not every machine has IPv6";
    EXPECT_EQ(found, expected) << family;
  }
}

}  // namespace
}  // namespace ucx::detail
