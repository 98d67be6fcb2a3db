#include "connection/listening_socket.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "connection/listener_core.hpp"
#include "os/greeting_filter.hpp"
#include "os/open_descriptors.hpp"
#include "os/rdma_port.hpp"
#include "os/tcp_socket.hpp"
#include "support/basics/soon.hpp"
#include "support/files/temporary_file.hpp"
#include "support/replaced/counted_calls.hpp"
#include "ucx/context.hpp"
#include "ucx/listener.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"

namespace ucx::detail {
namespace {

socket_address name_of(int descriptor, int (*ask)(int, ::sockaddr*, ::socklen_t*)) {
  ::sockaddr_storage found = {};
  ::socklen_t size = sizeof found;
  EXPECT_EQ(ask(descriptor, reinterpret_cast<::sockaddr*>(&found), &size), 0);
  std::error_code ec;
  return socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&found), size, ec);
}

owned_descriptor make_socket(int type, const socket_address& at) {
  owned_descriptor made(::socket(AF_INET, type | SOCK_CLOEXEC, 0));
  const int yes = 1;
  EXPECT_EQ(::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes), 0);
  EXPECT_EQ(::bind(made.get(), at.native(), at.native_size()), 0) << to_string(at);
  return made;
}

/// Both ends of a connection.
struct connection {
  owned_descriptor peer;
  owned_descriptor accepted;

  socket_address from() const { return name_of(peer.get(), &::getsockname); }
  /// Returns whether this side has let go within so many milliseconds.
  bool is_ended(int limit = 0) const {
    ::pollfd waiting{peer.get(), POLLIN, 0};
    return ::poll(&waiting, 1, limit) > 0;
  }
  /// Leaves at once, so that the peer's address is free again.
  void reset() {
    const ::linger none{1, 0};
    ::setsockopt(peer.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none);
    peer = owned_descriptor();
    accepted = owned_descriptor();
  }
};

struct place {
  const char* address;
  bool told;  ///< By the system, which socket is whose; else all descriptors are looked at.
};

/// Plain sockets in the place of UCX's.
class ListeningSocket : public testing::TestWithParam<place> {
 protected:
  ListeningSocket() { listen(socket_address(GetParam().address)); }

  void listen(const socket_address& at) {
    own_.emplace(at, GetParam().told ? socket_lookup() : socket_lookup::of_nothing());
    listening_ = make_socket(SOCK_STREAM, at);
    ASSERT_EQ(::listen(listening_.get(), 100), 0);
    address_ = name_of(listening_.get(), &::getsockname);
    own_->listens_at(address_);
  }
  void end() {
    own_.reset();
    listening_ = owned_descriptor();
  }
  connection connect(const socket_address& from = socket_address("127.0.0.1:0")) {
    connection made{make_socket(SOCK_STREAM, from), {}};
    const socket_address to("127.0.0.1", address_.port());
    EXPECT_EQ(::connect(made.peer.get(), to.native(), to.native_size()), 0);
    made.accepted = owned_descriptor(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    EXPECT_TRUE(made.accepted);
    return made;
  }

  std::optional<listening_socket> own_;
  owned_descriptor listening_;
  socket_address address_;
};

INSTANTIATE_TEST_SUITE_P(Addresses, ListeningSocket,
                         testing::Values(place{"127.0.0.1:0", true}, place{"0.0.0.0:0", true},
                                         place{"127.0.0.1:0", false}, place{"0.0.0.0:0", false}),
                         [](const auto& chosen) {
                           const std::string whose = chosen.index % 2 == 0 ? "One" : "All";
                           return whose + (chosen.param.told ? "Told" : "LookedFor");
                         });

TEST_P(ListeningSocket, EndsThoseWhoseRequestHasNotCome) {
  const connection known = connect();
  const connection unknown = connect();
  own_->add_known(known.from());
  EXPECT_EQ(own_->end_unknown(), 1U);
  EXPECT_FALSE(known.is_ended());
  EXPECT_TRUE(unknown.is_ended(10'000));
}

TEST_P(ListeningSocket, EndsThoseAmongSomeWhoseRequestHasNotCome) {
  const connection known = connect();
  const connection unknown = connect();
  const connection not_meant = connect();
  own_->add_known(known.from());
  const std::vector<std::uint64_t> numbers{tcp_socket::number(known.accepted.get()),
                                           tcp_socket::number(unknown.accepted.get())};
  own_->end_unknown(numbers);
  EXPECT_TRUE(unknown.is_ended(10'000));
  EXPECT_FALSE(known.is_ended());
  EXPECT_FALSE(not_meant.is_ended());
}

TEST_P(ListeningSocket, LeavesThoseOfAnEarlierListenerAlone) {
  const connection earlier = connect();
  const socket_address at = address_;
  end();
  listen(at);
  const connection unknown = connect();
  EXPECT_EQ(own_->end_unknown(), 1U);
  EXPECT_FALSE(earlier.is_ended());
  EXPECT_TRUE(unknown.is_ended(10'000));
}

TEST_P(ListeningSocket, LeavesSocketsOfOtherKindsAlone) {
  const owned_descriptor datagrams =
      make_socket(SOCK_DGRAM, socket_address("127.0.0.1", address_.port()));
  const socket_address itself = name_of(datagrams.get(), &::getsockname);
  ASSERT_EQ(::connect(datagrams.get(), itself.native(), itself.native_size()), 0);
  EXPECT_EQ(own_->end_unknown(), 0U);
  EXPECT_EQ(::send(datagrams.get(), "x", 1, MSG_NOSIGNAL), 1);
}

TEST_P(ListeningSocket, LeavesASocketThatIsMerelyBoundAlone) {
  const socket_address at = address_;
  end();
  const owned_descriptor bound = make_socket(SOCK_STREAM, at);
  listen(at);
  EXPECT_EQ(own_->end_unknown(), 0U);
}

// What comes from the same address is another connection all the same.
TEST_P(ListeningSocket, EndsWhoComesAgainFromTheSameAddress) {
  connection first = connect();
  const socket_address from = first.from();
  own_->add_known(from);
  first.reset();
  const connection again = connect(from);
  EXPECT_EQ(own_->end_unknown(), 1U);
  EXPECT_TRUE(again.is_ended(10'000));
}

TEST_P(ListeningSocket, KnowsEachOfManyWhileOthersLeave) {
  std::deque<connection> all;
  for (std::size_t i = 0; i < 400; ++i) {  // more than it knows before it looks who is still there
    all.push_back(connect());
    own_->add_known(all.back().from());
    if (i % 3 == 2) all[i / 2].reset();
  }
  EXPECT_EQ(own_->end_unknown(), 0U);
  for (const connection& each : all) EXPECT_TRUE(!each.peer || !each.is_ended());
}

// A server has thousands of sockets, and others come and go: none of them is looked at for a new
// one.
TEST_P(ListeningSocket, LooksAtNoOtherSocketsWhereTheSystemTells) {
  std::deque<connection> all;
  for (int i = 0; i < 150; ++i) all.push_back(connect());  // fewer than it forgets some at
  if (GetParam().told &&
      socket_lookup().find(
          address_.is_wildcard() ? socket_address("127.0.0.1", address_.port()) : address_,
          all.front().from()) == 0) {
    GTEST_SKIP() << "this system does not tell";
  }
  for (const connection& each : all) own_->add_known(each.from());
  std::uint64_t looks = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    all[i].reset();  // the lowest descriptors are free: the next ones get them
    all.push_back(connect());
    const socket_address from = all.back().from();
    const std::uint64_t before = test::getpeername_calls();
    own_->add_known(from);
    looks += test::getpeername_calls() - before;
  }
  EXPECT_EQ(looks == 0, GetParam().told) << looks;
  EXPECT_EQ(own_->end_unknown(), 0U);
}

// The filter lets it through: peers say that when they have been answered.
TEST_P(ListeningSocket, KnowsAHeaderAloneFromAGreeting) {
  const connection header = connect();
  ASSERT_EQ(::send(header.peer.get(), std::string(16, '\0').data(), 16, 0), 16);
  EXPECT_TRUE(test::soon([&] { return tcp_socket::received(header.accepted.get()) == 16U; }));
  EXPECT_FALSE(own_->add_known(header.from()));
  const connection greeting = connect();
  ASSERT_EQ(::send(greeting.peer.get(), std::string(26, '\0').data(), 26, 0), 26);
  EXPECT_TRUE(test::soon([&] { return tcp_socket::received(greeting.accepted.get()) == 26U; }));
  EXPECT_TRUE(own_->add_known(greeting.from()));
}

// What it sent can not be told any more: it may have been a header alone.
TEST_P(ListeningSocket, KnowsNobodyWhoIsGoneAlready) {
  if (!rdma_ports().empty()) GTEST_SKIP() << "a peer may come without a socket here";
  ASSERT_EQ(own_->keep_strangers_out().size(), 1U);
  for (const bool is_kept : {false, true}) {  // UCX has not closed its socket yet
    connection stranger = connect();
    const socket_address from = stranger.from();
    ASSERT_EQ(::send(stranger.peer.get(), std::string(16, '\0').data(), 16, 0), 16);
    owned_descriptor accepted;
    if (is_kept) accepted = owned_descriptor(::dup(stranger.accepted.get()));
    stranger.reset();
    EXPECT_FALSE(own_->add_known(from)) << is_kept;
  }
  const connection greeting = connect();
  ASSERT_EQ(::send(greeting.peer.get(), std::string(26, '\0').data(), 26, 0), 26);
  greeting_filter::detach(greeting.accepted.get());
  EXPECT_TRUE(own_->add_known(greeting.from()));
}

// Then nobody can be told from those whose request has come.
TEST_P(ListeningSocket, EndsNobodyOnceItIsNotToldWhoCame) {
  const connection unknown = connect();
  EXPECT_TRUE(own_->add_known(socket_address()));
  EXPECT_EQ(own_->end_unknown(), 0U);
  const std::vector<std::uint64_t> numbers{tcp_socket::number(unknown.accepted.get())};
  own_->end_unknown(numbers);
  EXPECT_FALSE(unknown.is_ended());
  EXPECT_TRUE(own_->add_known(unknown.from()));
}

TEST_P(ListeningSocket, KeepsOutWhatDoesNotGreet) {
  const std::vector<guarded_port> found = own_->keep_strangers_out();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().descriptor, listening_.get());
  EXPECT_EQ(found.front().address, address_);
  const connection scanner = connect();
  ASSERT_EQ(::send(scanner.peer.get(), std::string(100, '\0').data(), 100, 0), 100);
  ::pollfd waiting{scanner.accepted.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 100), 0);
}

/// Returns whether this process has a lock on it, as the system tells.
bool is_locked(const std::filesystem::path& file) {
  struct ::stat found = {};
  EXPECT_EQ(::stat(file.c_str(), &found), 0);
  const std::string wanted = ':' + std::to_string(found.st_ino) + ' ';
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    if (line.find("POSIX") != line.npos && line.find(wanted) != line.npos) return true;
  }
  return false;
}

// The system takes them away when any descriptor of the file is closed.
TEST_P(ListeningSocket, LeavesTheProgramItsLocksOfFiles) {
  const test::temporary_file file(1);
  const owned_descriptor opened(::open(file.path().c_str(), O_RDWR | O_CLOEXEC));
  ::flock lock = {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(opened.get(), F_SETLK, &lock), 0);
  ASSERT_TRUE(is_locked(file.path()));
  EXPECT_EQ(own_->keep_strangers_out().size(), 1U);
  EXPECT_TRUE(is_locked(file.path()));
  tcp_socket::with_socket(opened.get(), tcp_socket::number(opened.get()), [](int) {});
  EXPECT_TRUE(is_locked(file.path()));
}

/// So long the process gets no further descriptor.
class no_descriptors {
 public:
  no_descriptors() {
    int highest = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
      highest = std::max(highest, std::stoi(each.path().filename().string()));
    }
    while (taken_.empty() || taken_.back().get() <= highest) {  // all below are
      taken_.emplace_back(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0));
      if (!taken_.back()) throw std::runtime_error("no descriptors to begin with");
    }
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    ::rlimit least = before_;
    least.rlim_cur = static_cast<::rlim_t>(taken_.back().get()) + 1;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &least), 0);
  }
  ~no_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  no_descriptors(const no_descriptors&) = delete;
  no_descriptors& operator=(const no_descriptors&) = delete;

 private:
  ::rlimit before_ = {};
  std::vector<owned_descriptor> taken_;
};

TEST_P(ListeningSocket, ForgetsNobodyWhereThereAreNoDescriptors) {
  std::deque<connection> all;
  for (int i = 0; i < 256; ++i) {
    all.push_back(connect());
    own_->add_known(all.back().from());
  }
  const connection last = connect();
  {
    const no_descriptors none;
    own_->add_known(last.from());  // and looks who is still there
  }
  EXPECT_EQ(own_->end_unknown(), 0U);
  for (const connection& each : all) EXPECT_FALSE(each.is_ended());
  EXPECT_FALSE(last.is_ended());
}

TEST_P(ListeningSocket, CountsWhomItCanNotEndForWantOfADescriptor) {
  const connection unknown = connect();
  {
    const no_descriptors none;
    EXPECT_EQ(own_->end_unknown(), 1U);
    EXPECT_FALSE(unknown.is_ended());
  }
  EXPECT_EQ(own_->end_unknown(), 1U);
  EXPECT_TRUE(unknown.is_ended(10'000));
}

std::size_t threads() {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

// Who holds the request of a peer keeps what it was closed with, and no thread.
TEST(ListenerOverTcp, EndsTheThreadThatLooksAfterItsPort) {
  const context own({.configuration = {{"TLS", "tcp"}}});
  const worker driven(own, {.progress = progress_mode::caller});
  listener door(driven, socket_address("127.0.0.1:0"));
  const std::shared_ptr<listener_core> kept = core_access::core(door);
  const std::size_t before = threads();
  door.close();
  EXPECT_TRUE(test::soon([&] { return threads() == before - 1; }));
}

/// Returns the socket by which this process has let in whoever has sent so many bytes; -1 if none.
int let_in(const socket_address& at, std::uint64_t sent) {
  int found = -1;
  each_descriptor([&](int number) {
    if (tcp_socket::option(number, SO_ACCEPTCONN) != 0) return;
    if (tcp_socket::local(number) != at) return;
    if (tcp_socket::received(number) == sent) found = number;
  });
  return found;
}

// A header alone announces an address, and has none; who sent it can not be looked at any more.
TEST(ListenerOverTcp, HearsOfNobodyWhoWasGoneWhenItsRequestCame) {
  if (!rdma_ports().empty()) GTEST_SKIP() << "a peer may come without a socket here";
  const context own({.configuration = {{"TLS", "tcp"}}});
  worker driven(own, {.progress = progress_mode::caller});
  int asked = 0;
  const listener door(driven, socket_address("127.0.0.1:0"),
                      [&](const connection_request&) { ++asked; });
  owned_descriptor stranger(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(stranger.get(), door.address().native(), door.address().native_size()), 0);
  const std::array<std::byte, 16> header = {};
  ASSERT_EQ(::send(stranger.get(), header.data(), header.size(), MSG_NOSIGNAL), 16);
  // UCX's own thread reads it meanwhile.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  int left = 1;
  while (left != 0 && std::chrono::steady_clock::now() < until) {
    const int accepted = let_in(door.address(), header.size());
    if (accepted >= 0 && ::ioctl(accepted, FIONREAD, &left) != 0) left = 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_EQ(left, 0);
  const ::linger none{1, 0};
  ASSERT_EQ(::setsockopt(stranger.get(), SOL_SOCKET, SO_LINGER, &none, sizeof none), 0);
  stranger = owned_descriptor();
  for (int round = 0; round < 200; ++round) {
    driven.progress();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace ucx::detail
