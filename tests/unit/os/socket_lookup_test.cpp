#include "os/socket_lookup.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "base/owned_descriptor.hpp"
#include "os/tcp_socket.hpp"
#include "support/transports/loopback_connection.hpp"

namespace ucx::detail {
namespace {

socket_address name_of(const owned_descriptor& socket) { return tcp_socket::local(socket.get()); }
std::uint64_t cookie_of(const owned_descriptor& socket) { return tcp_socket::number(socket.get()); }

class SocketLookup : public test::loopback_connection {
 protected:
  void SetUp() override {
    loopback_connection::SetUp();
    if (peer_ && lookup_.find(door_, name_of(peer_)) == 0) {
      GTEST_SKIP() << "this system does not tell";
    }
  }

  socket_lookup lookup_;
};

INSTANTIATE_TEST_SUITE_P(Families, SocketLookup, SocketLookup::families(),
                         SocketLookup::name_of_family);

TEST_P(SocketLookup, FindsEachEndByBothAddresses) {
  EXPECT_EQ(lookup_.find(door_, name_of(peer_)), cookie_of(accepted_));
  EXPECT_EQ(lookup_.find(name_of(peer_), door_), cookie_of(peer_));
}

TEST_P(SocketLookup, FindsNeitherAListenerNorWhoIsGone) {
  const socket_address from = name_of(peer_);
  EXPECT_EQ(lookup_.find(door_, from.with_port(1)), 0U) << "the listener would take it";
  EXPECT_EQ(lookup_.find(door_.with_port(1), from), 0U);
  const ::linger none{1, 0};
  ::setsockopt(peer_.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
  peer_ = owned_descriptor();
  accepted_ = owned_descriptor();
  EXPECT_EQ(lookup_.find(door_, from), 0U);
}

TEST_P(SocketLookup, FindsNothingWhereNothingIsToldOrAsked) {
  EXPECT_EQ(socket_lookup::of_nothing().find(door_, name_of(peer_)), 0U);
  EXPECT_EQ(lookup_.find(socket_address(), name_of(peer_)), 0U);
  EXPECT_EQ(lookup_.find(door_, socket_address()), 0U);
  const socket_address other(door_.is_v4() ? "[::1]:1" : "127.0.0.1:1");
  EXPECT_EQ(lookup_.find(door_, other), 0U) << "of another family";
  EXPECT_NE(lookup_.find(door_, name_of(peer_)), 0U) << "and the next question is answered";
}

TEST_P(SocketLookup, FindsTheListenerWithItsUserAndNumber) {
  struct ::stat facts = {};
  ASSERT_EQ(::fstat(listening_.get(), &facts), 0);
  const auto found = lookup_.find_listener(door_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->file, facts.st_ino);
  EXPECT_EQ(found->user, ::geteuid());
  EXPECT_FALSE(lookup_.find_listener(name_of(peer_))) << "a connection is none";
  EXPECT_FALSE(lookup_.find_listener(socket_address()));
  EXPECT_FALSE(lookup_.find_listener(socket_address("unix:/tmp/x.sock")));
  EXPECT_FALSE(socket_lookup::of_nothing().find_listener(door_));
  listening_ = owned_descriptor();
  EXPECT_FALSE(lookup_.find_listener(door_));
}

}  // namespace
}  // namespace ucx::detail
