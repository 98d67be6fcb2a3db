#include "carrier/own_flows.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "base/owned_descriptor.hpp"
#include "os/socket_lookup.hpp"
#include "os/tcp_socket.hpp"
#include "support/basics/soon.hpp"
#include "support/transports/loopback_connection.hpp"

namespace ucx::detail {
namespace {

sockaddr_storage place_of(const socket_address& address) {
  sockaddr_storage made = {};
  std::memcpy(&made, address.native(), address.native_size());
  return made;
}

class OwnFlows : public test::loopback_connection {
 protected:
  void SetUp() override {
    loopback_connection::SetUp();
    if (IsSkipped()) return;
    from_ = tcp_socket::local(peer_.get());
    if (socket_lookup().find(from_, door_) == 0) GTEST_SKIP() << "this system does not tell";
    flow_ = flow_of(place_of(from_), place_of(door_));
    number_ = tcp_socket::number(peer_.get());
    ASSERT_TRUE(flow_);
  }
  bool has() const { return flows_.has(place_of(from_), place_of(door_)); }
  /// Connects a socket to the door, which accepts it.
  void connect(int from) {
    ASSERT_EQ(::connect(from, door_.native(), door_.native_size()), 0);
    accepted_ = owned_descriptor(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted_);
  }
  /// Makes a flow whose connection is reset, and returns a socket at its port; an empty descriptor
  /// where another program has that. The system gives the port away, though the socket is open.
  owned_descriptor socket_at_port_of_a_dead_one() {
    peer_ = open_socket();
    connect(peer_.get());
    from_ = tcp_socket::local(peer_.get());
    flow_ = flow_of(place_of(from_), place_of(door_));
    flows_.add(*flow_, tcp_socket::number(peer_.get()));
    const ::linger none{1, 0};
    EXPECT_EQ(::setsockopt(accepted_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
    accepted_ = owned_descriptor();
    EXPECT_TRUE(test::soon([this] { return !has(); }));
    owned_descriptor made = open_socket();
    if (::bind(made.get(), from_.native(), from_.native_size()) != 0) return {};
    return made;
  }
  owned_descriptor open_socket() const {
    return owned_descriptor(::socket(door_.native()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }

  own_flows flows_;
  socket_address from_;
  std::optional<tcp_flow> flow_;
  std::uint64_t number_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Families, OwnFlows, OwnFlows::families(), OwnFlows::name_of_family);

TEST_P(OwnFlows, AreThoseThatWereAdded) {
  EXPECT_FALSE(has());
  flows_.add(*flow_, number_);
  EXPECT_TRUE(has());
  flows_.remove(*flow_, number_ + 1);
  EXPECT_TRUE(has()) << "another socket had the flow";
  flows_.remove(*flow_, number_);
  EXPECT_FALSE(has());
}

TEST_P(OwnFlows, AreNotThoseOfWhoGetsThePortOfADeadOne) {
  // A port that the system has given to this connection may be another program's, too, with
  // another peer. Then it can not be had again, and the next connection has another one.
  owned_descriptor other;
  for (int i = 0; i < 100 && !other; ++i) other = socket_at_port_of_a_dead_one();
  ASSERT_TRUE(other);
  connect(other.get());
  ASSERT_EQ(tcp_socket::peer(accepted_.get()), from_);
  EXPECT_FALSE(has());
  flows_.add(*flow_, tcp_socket::number(other.get()));
  EXPECT_TRUE(has());
}

TEST_P(OwnFlows, AreKnownAtTheWildcardOfIpv6) {
  flows_.add(*flow_, number_);
  const std::string host = door_.is_v4() ? "[::ffff:127.0.0.1]:" : "[::1]:";
  const socket_address from(host + std::to_string(from_.port()));
  const socket_address to(host + std::to_string(door_.port()));
  EXPECT_TRUE(flows_.has(place_of(from), place_of(to)));
}

}  // namespace
}  // namespace ucx::detail
