#include "detail/socket_lookup.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cstdint>
#include <system_error>

#include "detail/owned_descriptor.hpp"

namespace ucx::detail {
namespace {

socket_address name_of(const owned_descriptor& socket) {
  ::sockaddr_storage found = {};
  ::socklen_t size = sizeof found;
  EXPECT_EQ(::getsockname(socket.get(), reinterpret_cast<::sockaddr*>(&found), &size), 0);
  std::error_code ec;
  return socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&found), size, ec);
}

std::uint64_t cookie_of(const owned_descriptor& socket) {
  std::uint64_t cookie = 0;
  ::socklen_t size = sizeof cookie;
  EXPECT_EQ(::getsockopt(socket.get(), SOL_SOCKET, SO_COOKIE, &cookie, &size), 0);
  return cookie;
}

/// A connection over loopback.
class SocketLookup : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const socket_address any(GetParam());
    const int family = any.native()->sa_family;
    listening_ = owned_descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listening_.get(), any.native(), any.native_size()) != 0) {
      GTEST_SKIP() << "this machine has no address " << to_string(any);
    }
    ASSERT_EQ(::listen(listening_.get(), 10), 0);
    door_ = name_of(listening_);
    peer_ = owned_descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(peer_.get(), door_.native(), door_.native_size()), 0);
    accepted_ = owned_descriptor(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted_);
    if (lookup_.find(door_, name_of(peer_)) == 0) GTEST_SKIP() << "this system does not tell";
  }

  socket_lookup lookup_;
  owned_descriptor listening_;
  owned_descriptor peer_;
  owned_descriptor accepted_;
  socket_address door_;
};

INSTANTIATE_TEST_SUITE_P(Families, SocketLookup, testing::Values("127.0.0.1:0", "[::1]:0"),
                         [](const auto& chosen) { return chosen.index == 0 ? "Ipv4" : "Ipv6"; });

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

}  // namespace
}  // namespace ucx::detail
