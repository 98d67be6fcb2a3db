#include "detail/tcp_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "detail/owned_descriptor.hpp"

namespace ucx::detail {
namespace {

TEST(TcpSocket, TellsNothingReceivedFromNothingKnown) {
  const owned_descriptor listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const socket_address any("127.0.0.1:0");
  ASSERT_EQ(::bind(listening.get(), any.native(), any.native_size()), 0);
  ASSERT_EQ(::listen(listening.get(), 1), 0);
  const socket_address there = tcp_socket::local(listening.get());
  const owned_descriptor peer(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_FALSE(tcp_socket::received(peer.get()));  // not yet connected
  ASSERT_EQ(::connect(peer.get(), there.native(), there.native_size()), 0);
  const owned_descriptor accepted(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!tcp_socket::received(accepted.get())) GTEST_SKIP() << "this system counts no bytes";
  EXPECT_EQ(tcp_socket::received(accepted.get()), 0U);
  ASSERT_EQ(::send(peer.get(), "hm", 2, MSG_NOSIGNAL), 2);
  EXPECT_EQ(tcp_socket::received(accepted.get()), 2U);
  EXPECT_FALSE(tcp_socket::received(STDERR_FILENO));
}

}  // namespace
}  // namespace ucx::detail
