#include "os/tcp_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>

#include "base/owned_descriptor.hpp"
#include "support/basics/soon.hpp"

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
  EXPECT_TRUE(test::soon([&] { return tcp_socket::received(accepted.get()) == 2U; }));
  EXPECT_FALSE(tcp_socket::received(STDERR_FILENO));
}

// A descriptor of UCX's may be another file's at any moment.
TEST(TcpSocket, IsTakenByItsNumberUnderADescriptorOfItsOwn) {
  const owned_descriptor one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const owned_descriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::uint64_t which = tcp_socket::number(one.get());
  ASSERT_NE(which, 0U);
  int taken = -1;
  EXPECT_TRUE(tcp_socket::with_socket(one.get(), which, [&](int held) {
    taken = held;
    EXPECT_EQ(tcp_socket::number(held), which);
  }));
  EXPECT_NE(taken, one.get());
  EXPECT_EQ(::fcntl(taken, F_GETFD), -1) << "it is closed again";
  ASSERT_EQ(::dup3(other.get(), one.get(), O_CLOEXEC), one.get());
  EXPECT_FALSE(tcp_socket::with_socket(one.get(), which, [](int) { ADD_FAILURE(); }));
  EXPECT_FALSE(tcp_socket::with_socket(-1, which, [](int) { ADD_FAILURE(); }));
}

TEST(TcpSocket, IsTakenByItsOwnDescriptorWhereThereIsNoOther) {
  const owned_descriptor one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::uint64_t which = tcp_socket::number(one.get());
  ::rlimit before = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  ::rlimit none = before;
  none.rlim_cur = 0;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  int taken = -1;
  const bool is_taken = tcp_socket::with_socket(one.get(), which, [&](int held) { taken = held; });
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(is_taken);
  EXPECT_EQ(taken, one.get());
}

}  // namespace
}  // namespace ucx::detail
