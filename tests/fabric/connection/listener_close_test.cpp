// A listener that ends while peers are about to connect: they hear of it, and nobody else does.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <deque>
#include <optional>
#include <system_error>
#include <vector>

#include "support/transports/connected_pair.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

/// Somebody who connects, and sends what UCX takes for the beginning of a request, or nothing.
class slow_peer {
 public:
  explicit slow_peer(const socket_address& to, std::size_t sent = 0)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    connected_ = ::connect(fd_, to.native(), to.native_size()) == 0;
    const std::array<std::byte, 64> request = {std::byte{60}};  // its length; the status follows
    if (sent > 0) connected_ = ::send(fd_, request.data(), sent, MSG_NOSIGNAL) > 0 && connected_;
  }
  ~slow_peer() { ::close(fd_); }
  slow_peer(const slow_peer&) = delete;
  slow_peer& operator=(const slow_peer&) = delete;

  bool connected() const { return connected_; }
  /// Returns whether the other side has let go within some seconds. Who has not been let in hears
  /// of it when it speaks.
  bool is_let_go() const {
    [[maybe_unused]] const ::ssize_t spoken = ::send(fd_, "x", 1, MSG_NOSIGNAL);
    ::pollfd waiting{fd_, POLLIN, 0};
    char unused = 0;
    return ::poll(&waiting, 1, 10'000) == 1 && ::recv(fd_, &unused, 1, 0) <= 0;
  }

 private:
  int fd_;
  bool connected_ = false;
};

class ListenerClose : public testing::TestWithParam<const char*> {
 protected:
  context server_context_{context_options_for(route::tcp_by_listener)};
  context client_context_{context_options_for(route::tcp_by_listener)};
  worker server_{server_context_, {.progress = progress_mode::sleeping_thread}};
  worker client_{client_context_};
  std::optional<listener> door_{std::in_place, server_, socket_address(GetParam())};
  const socket_address address_{"127.0.0.1", door_->address().port()};
};

INSTANTIATE_TEST_SUITE_P(Addresses, ListenerClose, testing::Values("127.0.0.1:0", "0.0.0.0:0"),
                         [](const auto& chosen) { return chosen.index == 0 ? "One" : "All"; });

TEST_P(ListenerClose, LetsGoOfThoseWhoHaveSentNoRequest) {
  std::deque<slow_peer> peers;
  for (const std::size_t sent : {0U, 4U, 20U, 0U}) peers.emplace_back(address_, sent);
  for (const slow_peer& each : peers) ASSERT_TRUE(each.connected());
  door_.reset();
  for (const slow_peer& each : peers) EXPECT_TRUE(each.is_let_go());
}

TEST_P(ListenerClose, LeavesConnectionsAlone) {
  const memory_region owned = memory_region::allocate(server_context_, 100, access::read);
  std::deque<endpoint> made;
  for (int i = 0; i < 3; ++i) made.emplace_back(client_, address_);
  const slow_peer slow(address_);
  door_.reset();
  EXPECT_TRUE(slow.is_let_go());
  std::vector<std::byte> into(100);
  for (const endpoint& each : made) {
    remote_region(each, owned.descriptor()).read_at(0, into);
    EXPECT_EQ(each.state(), connection_state::active);
  }
}

TEST_P(ListenerClose, LeavesTheConnectionsOfAnEarlierListenerAlone) {
  const memory_region owned = memory_region::allocate(server_context_, 100, access::read);
  const socket_address address = door_->address();
  const endpoint earlier(client_, address_);
  door_.reset();
  door_.emplace(server_, address);
  const endpoint later(client_, address_);
  const slow_peer slow(address_);
  door_.reset();
  EXPECT_TRUE(slow.is_let_go());
  std::vector<std::byte> into(100);
  remote_region(earlier, owned.descriptor()).read_at(0, into);
  remote_region(later, owned.descriptor()).read_at(0, into);
}

TEST_P(ListenerClose, GivesTheAddressBackAtOnce) {
  for (int i = 0; i < 5; ++i) {
    const slow_peer slow(address_);
    const socket_address address = door_->address();
    door_.reset();
    std::error_code ec;
    door_.emplace(server_, address, listener_options(), ec);
    ASSERT_FALSE(ec) << ec.message();
    const endpoint made(client_, address_);
  }
}

TEST_P(ListenerClose, GivesTheAddressBackWhileAnAcceptanceIsThere) {
  door_.emplace(server_, socket_address(GetParam()), listener_options{.manual_accept = true});
  const socket_address address = door_->address();
  const listener::acceptance waiting = door_->accept();
  door_->close();
  std::error_code ec;
  const listener again(server_, address, listener_options(), ec);
  EXPECT_FALSE(ec) << ec.message();
}

TEST_P(ListenerClose, ForgetsThePeersThatHaveLeft) {
  // More than it remembers before it looks who is still there.
  for (int i = 0; i < 300; ++i) {
    std::error_code ec;
    const endpoint made(client_, address_, endpoint_options(), ec);
    ASSERT_FALSE(ec) << i << ": " << ec.message();
  }
  const memory_region owned = memory_region::allocate(server_context_, 100, access::read);
  const endpoint made(client_, address_);
  door_.reset();
  std::vector<std::byte> into(100);
  remote_region(made, owned.descriptor()).read_at(0, into);
}

}  // namespace
}  // namespace ucx::test
