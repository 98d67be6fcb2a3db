// A connection over loopback, for tests of what the system says and does of it.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include "base/owned_descriptor.hpp"
#include "os/tcp_socket.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::test {

/// Its parameter is where the one side listens; one that this machine does not have is skipped.
class loopback_connection : public testing::TestWithParam<const char*> {
 public:
  static auto families() { return testing::Values("127.0.0.1:0", "[::1]:0"); }
  static std::string name_of_family(const testing::TestParamInfo<const char*>& chosen) {
    return chosen.index == 0 ? "Ipv4" : "Ipv6";
  }

 protected:
  void SetUp() override {
    const socket_address any(GetParam());
    const int family = any.native()->sa_family;
    listening_ = detail::owned_descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listening_.get(), any.native(), any.native_size()) != 0) {
      GTEST_SKIP() << "this machine has no address " << to_string(any);
    }
    ASSERT_EQ(::listen(listening_.get(), 10), 0);
    door_ = detail::tcp_socket::local(listening_.get());
    listens();
    if (IsSkipped()) return;
    peer_ = detail::owned_descriptor(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::connect(peer_.get(), door_.native(), door_.native_size()), 0);
    accepted_ =
        detail::owned_descriptor(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(accepted_);
  }
  /// Is called before anybody connects.
  virtual void listens() {}

  detail::owned_descriptor listening_;
  detail::owned_descriptor peer_;
  detail::owned_descriptor accepted_;
  socket_address door_;
};

}  // namespace ucx::test
