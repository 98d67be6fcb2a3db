// Connecting by socket address, and every way in which that fails.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/transports/connected_pair.hpp"
#include "support/transports/ipv6.hpp"
#include "support/transports/network.hpp"
#include "support/transports/two_ends.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using clock = std::chrono::steady_clock;

/// A plain socket that accepts connections, by the kernel alone, and says nothing; or, if it does
/// not listen, keeps its port from others, so that nobody is there.
class silent_socket {
 public:
  explicit silent_socket(bool listens = true)
      : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    ::sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    ::bind(fd_, reinterpret_cast<const ::sockaddr*>(&address), sizeof address);
    if (listens) ::listen(fd_, 16);
  }
  ~silent_socket() { ::close(fd_); }
  silent_socket(const silent_socket&) = delete;
  silent_socket& operator=(const silent_socket&) = delete;

  socket_address address() const {
    ::sockaddr_in bound = {};
    ::socklen_t length = sizeof bound;
    ::getsockname(fd_, reinterpret_cast<::sockaddr*>(&bound), &length);
    return socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&bound), length);
  }

 private:
  int fd_;
};

/// A plain socket that takes connections and closes them at once.
class closing_socket {
 public:
  closing_socket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const socket_address any("127.0.0.1:0");
    ::bind(fd_, any.native(), any.native_size());
    ::listen(fd_, 16);
    ::sockaddr_in bound = {};
    ::socklen_t length = sizeof bound;
    ::getsockname(fd_, reinterpret_cast<::sockaddr*>(&bound), &length);
    address_ = socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&bound), length);
    closer_ = std::thread([this] {
      for (int fd = ::accept(fd_, nullptr, nullptr); fd >= 0;
           fd = ::accept(fd_, nullptr, nullptr)) {
        ++taken_;
        ::close(fd);
      }
    });
  }
  ~closing_socket() {
    ::shutdown(fd_, SHUT_RDWR);  // ends accept()
    closer_.join();
    ::close(fd_);
  }
  closing_socket(const closing_socket&) = delete;
  closing_socket& operator=(const closing_socket&) = delete;

  const socket_address& address() const noexcept { return address_; }
  int taken() const noexcept { return taken_; }

 private:
  int fd_;
  socket_address address_;
  std::atomic<int> taken_{0};
  std::thread closer_;
};

class Listener : public testing::Test {
 protected:
  /// Connects, and returns what became of it.
  std::error_code connect(const socket_address& to,
                          std::chrono::nanoseconds timeout = patience(60s)) {
    endpoint_options options;
    options.connect_timeout = timeout;
    std::error_code ec;
    const endpoint made(client_, to, std::move(options), ec);
    return ec;
  }

  context server_context_{context_options_for(route::tcp_by_listener)};
  context client_context_{context_options_for(route::tcp_by_listener)};
  worker server_{server_context_, patient({.progress = progress_mode::sleeping_thread})};
  worker client_{client_context_, patient({.connect_timeout = 60s})};  // longer than any bound
  const socket_address any_port_ = any_port_of_network();
};

TEST_F(Listener, TellsThePortThatTheSystemChose) {
  const listener door(server_, any_port_);
  EXPECT_EQ(door.address().host(), network_host());
  EXPECT_NE(door.address().port(), 0);
  const listener another(server_, any_port_);
  EXPECT_NE(another.address(), door.address());
  EXPECT_FALSE(connect(door.address()));
  EXPECT_FALSE(connect(another.address()));
}

TEST_F(Listener, RefusesIpv6WhereUcxIsNotSetUpForIt) {
  std::error_code ec;
  try {
    const listener door(server_, socket_address("[::1]:0"));
    FAIL() << "it listens";
  } catch (const error& refused) {
    EXPECT_EQ(refused.code(), errc::not_supported);
    EXPECT_NE(std::string(refused.what()).find("TCP_AF_PRIO"), std::string::npos);
    EXPECT_NE(std::string(refused.what()).find("ucx+tcp"), std::string::npos) << refused.what();
  }
  const endpoint made(client_, socket_address("[::1]:7471"), {}, ec);
  EXPECT_EQ(ec, errc::not_supported);
}

TEST(ListenerByIpv6, ServesAPeer) {
  if (ucx_version() < version_number{1, 14, 0}) {
    GTEST_SKIP() << "UCX " << to_string(ucx_version()) << " has no IPv6 on the loopback";
  }
  if (!has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  context_options options;
  options.transports = {"tcp"};
  options.configuration = {{"TCP_AF_PRIO", "inet6"}};
  std::error_code ec;
  const context server_context(options, ec);
  ASSERT_FALSE(ec) << ec.message();
  const context client_context(options);
  const worker server(server_context, {.progress = progress_mode::sleeping_thread});
  const worker client(client_context);
  const listener door(server, socket_address("[::1]:0"));
  EXPECT_TRUE(door.address().is_v6());
  const endpoint made(client, door.address());
  EXPECT_EQ(made.peer(), door.address());
  memory_region owned = memory_region::allocate(server_context, 100, access::read);
  fill_pattern(owned.bytes());
  remote_region region(made, owned.descriptor());
  std::vector<std::byte> into(100);
  region.read_at(0, into);
  EXPECT_TRUE(holds_pattern(into));
}

TEST_F(Listener, ServesManyPeersAtOnce) {
  const listener door(server_, any_port_);
  memory_region owned = memory_region::allocate(server_context_, 5000, access::read);
  fill_pattern(owned.bytes());
  std::vector<endpoint> peers;
  std::vector<remote_region> regions;
  for (int i = 0; i < 30; ++i) {
    peers.emplace_back(client_, door.address());
    regions.emplace_back(peers.back(), owned.descriptor());
  }
  for (remote_region& region : regions) {
    std::vector<std::byte> into(5000);
    region.read_at(0, into);
    EXPECT_TRUE(holds_pattern(into));
  }
}

TEST_F(Listener, RefusesAnAddressThatIsTaken) {
  const listener door(server_, any_port_);
  std::error_code ec;
  const listener second(server_, door.address(), {}, ec);
  EXPECT_EQ(ec, errc::address_in_use);
  EXPECT_EQ(ec, std::errc::address_in_use);
  if (goes_over_verbs()) GTEST_SKIP() << "the other is a socket of TCP";
  const silent_socket other;
  try {
    const listener third(server_, other.address());
    ADD_FAILURE() << "listens where another does";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), errc::address_in_use);
    EXPECT_THAT(failed.what(), testing::HasSubstr(to_string(other.address())));
  }
}

TEST_F(Listener, RefusesAnAddressThatIsNotOfThisMachine) {
  std::error_code ec;
  const listener far(server_, socket_address("198.51.100.1:0"), {}, ec);
  EXPECT_EQ(ec, errc::bad_address);
  const listener nowhere(server_, socket_address(), {}, ec);
  EXPECT_EQ(ec, errc::bad_address);
}

TEST_F(Listener, GivesThePortBackWhenClosed) {
  std::optional<listener> door(std::in_place, server_, any_port_);
  const socket_address address = door->address();
  EXPECT_FALSE(connect(address));
  door.reset();
  EXPECT_EQ(connect(address), errc::connection_refused);
  const listener again(server_, address);
  EXPECT_EQ(again.address(), address);
  EXPECT_FALSE(connect(address));
}

TEST_F(Listener, KeepsConnectionsThatItAcceptedWhenClosed) {
  std::optional<listener> door(std::in_place, server_, any_port_);
  const endpoint made(client_, door->address());
  memory_region owned = memory_region::allocate(server_context_, 100, access::read);
  remote_region region(made, owned.descriptor());
  door->close();
  door->close();
  door.reset();
  std::vector<std::byte> into(100);
  region.read_at(0, into);
}

TEST_F(Listener, LetsTheHandlerAcceptAtOnce) {
  std::mutex mutex;
  std::vector<endpoint> accepted;
  socket_address peer;
  const listener door(server_, any_port_, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    peer = request.peer();
    accepted.emplace_back(server_, std::move(request));
  });
  EXPECT_FALSE(connect(door.address()));
  const std::lock_guard guard(mutex);
  EXPECT_EQ(accepted.size(), 1U);
  EXPECT_EQ(peer.host(), network_host());
  EXPECT_NE(peer.port(), 0);
  EXPECT_EQ(accepted.front().peer(), peer);
}

TEST_F(Listener, ConnectsItsOwnWorker) {
  std::optional<endpoint> accepted;
  const listener door(client_, any_port_, [&](connection_request request) {
    accepted.emplace(client_, std::move(request));
  });
  endpoint made(client_, door.address());
  ASSERT_TRUE(accepted);
  accepted->wait_connected();
  EXPECT_EQ(client_.connections(), 2U);
  expect_carries(client_context_, made, *accepted);
  expect_carries(client_context_, *accepted, made);
  made.close();
  EXPECT_TRUE(soon([&] {
    client_.progress();
    return static_cast<bool>(accepted->status());
  }));
  EXPECT_EQ(accepted->status(), errc::closed_by_peer);
}

TEST_F(Listener, LetsTheHandlerReject) {
  std::atomic<int> asked{0};
  const listener door(server_, any_port_, [&](connection_request request) {
    ++asked;
    request.reject();
    request.reject();
  });
  const clock::time_point begin = clock::now();
  EXPECT_EQ(connect(door.address()), errc::connection_refused);
  EXPECT_LT(clock::now() - begin, 30s) << "an answer, not the time-out of a minute";
  EXPECT_EQ(asked, 1);
}

TEST_F(Listener, RejectsARequestThatTheHandlerDrops) {
  const listener door(server_, any_port_, [](connection_request) {});
  EXPECT_EQ(connect(door.address()), errc::connection_refused);
}

TEST_F(Listener, LetsARequestBeAcceptedLater) {
  std::mutex mutex;
  std::optional<connection_request> kept;
  const listener door(server_, any_port_, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    kept = std::move(request);
  });
  std::optional<endpoint> accepted;
  std::jthread later([&] {
    for (const auto until = clock::now() + patience(20s); clock::now() < until;) {
      std::this_thread::sleep_for(10ms);
      const std::lock_guard guard(mutex);
      if (!kept) continue;
      accepted.emplace(server_, std::move(*kept));
      return;
    }
  });
  // Held until the end: the other side loses its connection as soon as this one goes.
  endpoint_options options;
  options.connect_timeout = patience(20s);
  const endpoint made(client_, door.address(), std::move(options));
  later.join();
  ASSERT_TRUE(accepted);
  std::error_code ec;
  accepted->wait_connected(ec);
  EXPECT_FALSE(ec);
}

TEST_F(Listener, RejectsWhatWasKeptWhenItIsGone) {
  std::mutex mutex;
  std::optional<connection_request> kept;
  std::optional<listener> door(std::in_place, server_, any_port_, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    kept = std::move(request);
  });
  const socket_address address = door->address();
  std::jthread later([&] {
    for (const auto until = clock::now() + patience(20s); clock::now() < until;) {
      std::this_thread::sleep_for(10ms);
      const std::lock_guard guard(mutex);
      if (!kept) continue;
      door.reset();
      kept.reset();
      return;
    }
  });
  EXPECT_EQ(connect(address, patience(20s)), errc::connection_refused);
}

TEST_F(Listener, AcceptsOnItsOwnWorkerOnly) {
  std::error_code ec;
  std::atomic<bool> called{false};
  const listener door(server_, any_port_, [&](connection_request request) {
    const endpoint wrong(client_, std::move(request), {}, ec);
    called = true;
  });
  EXPECT_EQ(connect(door.address()), errc::connection_refused);
  EXPECT_TRUE(called);
  EXPECT_EQ(ec, errc::invalid_argument);
}

TEST_F(Listener, NobodyThereIsAConnectionRefused) {
  if (goes_over_verbs()) GTEST_SKIP() << "the other is a socket of TCP";
  const silent_socket nobody(false);
  const socket_address vacant = nobody.address();
  const clock::time_point begin = clock::now();
  EXPECT_EQ(connect(vacant), errc::connection_refused);
  EXPECT_LT(clock::now() - begin, 30s) << "an answer, not the time-out of a minute";
  try {
    const endpoint made(client_, vacant);
    ADD_FAILURE() << "connected to nobody";
  } catch (const error& failed) {
    EXPECT_EQ(failed.code(), std::errc::connection_refused);
    EXPECT_THAT(failed.what(), testing::HasSubstr("connecting to " + to_string(vacant)));
  }
}

// UCX 1.22 calls it as it calls a port where nobody listens.
TEST_F(Listener, AnotherProtocolThatHangsUpIsAConnectionRefused) {
  if (goes_over_verbs()) GTEST_SKIP() << "the other is a socket of TCP";
  const closing_socket other;
  const clock::time_point begin = clock::now();
  EXPECT_EQ(connect(other.address()), errc::connection_refused);
  EXPECT_LT(clock::now() - begin, 30s) << "an answer, not the time-out of a minute";
  EXPECT_EQ(other.taken(), 1);
}

TEST_F(Listener, AnotherProtocolThatSaysNothingTimesOut) {
  if (goes_over_verbs()) GTEST_SKIP() << "the other is a socket of TCP";
  const silent_socket other;
  const clock::time_point begin = clock::now();
  EXPECT_EQ(connect(other.address(), 300ms), errc::timed_out);
  EXPECT_GE(clock::now() - begin, 300ms);
  EXPECT_LT(clock::now() - begin, 30s);
}

TEST_F(Listener, APeerThatIsNeverAcceptedTimesOut) {
  std::mutex mutex;
  std::vector<connection_request> kept;
  const listener door(server_, any_port_, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    kept.push_back(std::move(request));
  });
  const clock::time_point begin = clock::now();
  EXPECT_EQ(connect(door.address(), 300ms), errc::timed_out);
  EXPECT_LT(clock::now() - begin, 30s);
}

TEST_F(Listener, PortZeroIsNobodysAddress) {
  EXPECT_EQ(connect(any_port_), errc::bad_address);
  EXPECT_EQ(connect(socket_address()), errc::bad_address);
}

TEST_F(Listener, FailedConnectionsLeaveNoDescriptorsBehind) {
  if (goes_over_verbs()) GTEST_SKIP() << "the other is a socket of TCP";
  const silent_socket nobody(false);
  const socket_address vacant = nobody.address();
  const silent_socket silent;
  const auto open_files = [] {
    int count = 0;
    for (int fd = 0; fd < 4096; ++fd) count += ::fcntl(fd, F_GETFD) >= 0 ? 1 : 0;
    return count;
  };
  EXPECT_EQ(connect(vacant), errc::connection_refused);
  EXPECT_EQ(connect(silent.address(), 30ms), errc::timed_out);
  const int before = open_files();
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(connect(vacant), errc::connection_refused);
    EXPECT_EQ(connect(silent.address(), 30ms), errc::timed_out);
  }
  // UCX's own threads open some for a moment: what is left is what stays.
  int left = open_files();
  for (int i = 0; i < 10'000 && left > before; ++i) {
    client_.progress();
    std::this_thread::sleep_for(1ms);
    left = open_files();
  }
  EXPECT_LE(left, before);
}

TEST_F(Listener, TellsTheHandlerWhenThePeerLeaves) {
  std::atomic<int> lost{0};
  std::mutex mutex;
  std::optional<endpoint> accepted;
  const listener door(server_, any_port_, [&](connection_request request) {
    const std::lock_guard guard(mutex);
    endpoint_options options;
    options.events.on_closed = [&](const connection_end& end) { lost = end.reason.value(); };
    accepted.emplace(server_, std::move(request), std::move(options));
  });
  EXPECT_FALSE(connect(door.address()));
  for (const auto until = clock::now() + patience(20s); lost == 0 && clock::now() < until;) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_EQ(lost, static_cast<int>(errc::closed_by_peer));
  const std::lock_guard guard(mutex);
  EXPECT_EQ(accepted->status(), errc::closed_by_peer);
}

}  // namespace
}  // namespace ucx::test
