#include "connection/port_guard.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "os/greeting_filter.hpp"
#include "os/open_descriptors.hpp"
#include "os/tcp_socket.hpp"
#include "support/transports/ipv6.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

std::string spoken() { return std::string(34, '\x12'); }

/// A plain socket in the place of UCX's, and a guard of it.
class PortGuard : public testing::Test {
 protected:
  PortGuard() : listening_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const socket_address any("127.0.0.1:0");
    EXPECT_EQ(::bind(listening_.get(), any.native(), any.native_size()), 0);
    EXPECT_EQ(::listen(listening_.get(), 100), 0);
    address_ = tcp_socket::local(listening_.get());
  }
  ~PortGuard() override { guard_.reset(); }

  void guard(std::chrono::milliseconds silence, bool greets = false, std::size_t most_silent = 64) {
    if (greets && !greeting_filter::attach(listening_.get())) GTEST_SKIP() << "no filters";
    const int descriptor = listening_.get();
    guard_ = std::make_unique<port_guard>(
        std::vector<guarded_port>{{descriptor, tcp_socket::number(descriptor), address_, greets}},
        port_guard::bounds{
            .silence = silence, .settling = 10ms, .period = 30ms, .most_silent = most_silent},
        port_guard::listeners{[this](const guarded_port& port) {
                                lost_at_ = port.address.port();
                                ++lost_;
                              },
                              [this](const std::vector<std::uint64_t>& numbers) {
                                overdue_ = numbers.size() == 1 ? numbers.front() : 0;
                                ++told_of_overdue_;
                              },
                              [this](bool let_in, std::size_t) { let_in_ = let_in; }});
  }

  owned_descriptor connect() {
    owned_descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(made.get(), address_.native(), address_.native_size()), 0);
    return made;
  }
  /// Connects, and has somebody else let in, which leaves fewer descriptors than are kept free.
  owned_descriptor connect_as_last() {
    before_ = connect();
    say(before_, spoken());
    // Behind that no descriptor of this side's is left for connecting.
    owned_descriptor last = connect();
    say(last, spoken());
    let_in_before_ = accept();
    EXPECT_TRUE(soon([this] { return !let_in_; }));
    return last;
  }
  /// Begins to connect.
  static owned_descriptor knock(const socket_address& at) {
    owned_descriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const bool waits = ::connect(made.get(), at.native(), at.native_size()) != 0;
    EXPECT_TRUE(!waits || errno == EINPROGRESS);
    return made;
  }
  static bool is_connected(const owned_descriptor& peer, int limit) {
    ::pollfd connected{peer.get(), POLLOUT, 0};
    return ::poll(&connected, 1, limit) == 1;
  }
  /// Lets in who has said something, or has been silent for longer than the system waits.
  owned_descriptor accept() {
    ::pollfd waiting{listening_.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&waiting, 1, 30'000), 1);
    return owned_descriptor(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  }
  /// So many could be let in.
  std::size_t waiting() const {
    ::tcp_info info = {};
    ::socklen_t size = sizeof info;
    EXPECT_EQ(::getsockopt(listening_.get(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
    return info.tcpi_unacked;
  }
  static void say(const owned_descriptor& to, const std::string& bytes) {
    EXPECT_EQ(::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<::ssize_t>(bytes.size()));
  }
  static bool is_ended(const owned_descriptor& peer, int limit) {
    ::pollfd waiting{peer.get(), POLLIN, 0};
    return ::poll(&waiting, 1, limit) > 0;
  }
  template <class Condition>
  static bool soon(Condition condition) {
    const auto until = std::chrono::steady_clock::now() + 30s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= until) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }

  owned_descriptor listening_;
  socket_address address_;
  owned_descriptor before_;
  owned_descriptor let_in_before_;
  std::unique_ptr<port_guard> guard_;
  std::atomic<int> lost_{0};
  std::atomic<std::uint16_t> lost_at_{0};
  std::atomic<std::uint64_t> overdue_{0};
  std::atomic<int> told_of_overdue_{0};
  std::atomic<bool> let_in_{true};
};

TEST_F(PortGuard, SendsAwayWhoSaysTooLittle) {
  guard(50ms);
  const owned_descriptor quiet = connect();
  say(quiet, "hm");
  const owned_descriptor speaking = connect();
  say(speaking, spoken());
  const owned_descriptor first = accept();
  const owned_descriptor second = accept();
  EXPECT_TRUE(is_ended(quiet, 30'000));
  EXPECT_FALSE(is_ended(speaking, 100));
}

TEST_F(PortGuard, SendsAwayAStrangerAtAPortForData) {
  guard(50ms);
  const owned_descriptor quiet = connect();
  say(quiet, spoken().substr(0, 8));
  const owned_descriptor accepted = accept();
  EXPECT_TRUE(is_ended(quiet, 30'000));
}

TEST_F(PortGuard, TellsOnceOfWhoHasBegunAGreetingLongAgo) {
  guard(50ms, true);
  if (IsSkipped()) return;
  std::string greeting(516, '\0');
  greeting[0] = static_cast<char>(1500 & 0xff);
  greeting[1] = static_cast<char>(1500 >> 8);
  greeting[25] = 2;  // the kind of address
  const owned_descriptor peer = connect();
  say(peer, greeting);
  const owned_descriptor accepted = accept();
  EXPECT_TRUE(soon([this] { return told_of_overdue_ > 0; }));
  EXPECT_EQ(overdue_, tcp_socket::number(accepted.get()));
  EXPECT_FALSE(is_ended(peer, 200));  // whoever is told decides
  EXPECT_EQ(told_of_overdue_, 1);
}

TEST_F(PortGuard, SendsAwayWhoIsSilentAtOnceWhereTheyAreMany) {
  guard(1h, false, 2);
  std::deque<owned_descriptor> quiet;
  std::deque<owned_descriptor> accepted;
  for (int i = 0; i < 4; ++i) {
    quiet.push_back(connect());
    say(quiet.back(), "hm");
    accepted.push_back(accept());
  }
  for (const owned_descriptor& each : quiet) EXPECT_TRUE(is_ended(each, 30'000));
}

TEST_F(PortGuard, LooksAfterAPortOfEveryAddress) {
  guard(50ms);
  const owned_descriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const socket_address any("0.0.0.0:0");
  ASSERT_EQ(::bind(other.get(), any.native(), any.native_size()), 0);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  const socket_address everywhere = tcp_socket::local(other.get());
  guard_->add({{other.get(), tcp_socket::number(other.get()), everywhere, false}});
  const socket_address there("127.0.0.1", everywhere.port());
  const owned_descriptor quiet(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(quiet.get(), there.native(), there.native_size()), 0);
  say(quiet, "hm");
  const owned_descriptor accepted(::accept4(other.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(is_ended(quiet, 30'000));
}

TEST_F(PortGuard, LeavesPeersOfTheOtherFamilyAlone) {
  if (!test::has_ipv6()) GTEST_SKIP() << "this machine has no ::1";
  const auto listens_at = [](const socket_address& at) {
    owned_descriptor made(::socket(at.native()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int yes = 1;
    ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    const bool listens =
        ::bind(made.get(), at.native(), at.native_size()) == 0 && ::listen(made.get(), 1) == 0;
    return listens ? std::move(made) : owned_descriptor();
  };
  owned_descriptor four;
  owned_descriptor six;
  // Another process may have the port in the other family.
  for (int i = 0; i < 20 && !six; ++i) {
    four = listens_at(socket_address("0.0.0.0:0"));
    six = listens_at(socket_address("::1", tcp_socket::local(four.get()).port()));
  }
  ASSERT_TRUE(six);
  guard(50ms);
  const socket_address everywhere = tcp_socket::local(four.get());
  guard_->add({{four.get(), tcp_socket::number(four.get()), everywhere, false}});
  const auto let_in = [](const owned_descriptor& by, const socket_address& at) {
    owned_descriptor quiet(::socket(at.native()->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(quiet.get(), at.native(), at.native_size()), 0);
    say(quiet, "hm");
    owned_descriptor accepted(::accept4(by.get(), nullptr, nullptr, SOCK_CLOEXEC));
    return std::pair(std::move(quiet), std::move(accepted));
  };
  const auto elsewhere = let_in(six, tcp_socket::local(six.get()));
  const auto there = let_in(four, socket_address("127.0.0.1", everywhere.port()));
  EXPECT_TRUE(is_ended(there.first, 30'000));
  EXPECT_FALSE(is_ended(elsewhere.first, 100)) << "it came first";
}

/// Returns whether all threads but this one sleep: none holds a lock of the allocator's, which a
/// child would find held for ever.
bool other_threads_sleep() {
  const std::string own = std::to_string(::gettid());
  for (const auto& each : std::filesystem::directory_iterator("/proc/self/task")) {
    if (each.path().filename() == own) continue;
    std::ifstream file(each.path() / "stat");
    const std::string told((std::istreambuf_iterator<char>(file)), {});
    const std::size_t behind_name = told.rfind(')');
    if (behind_name != std::string::npos && told.substr(behind_name + 2, 1) != "S") return false;
  }
  return true;
}

TEST_F(PortGuard, IsLeftToTheParentByAChild) {
  guard(50ms);
  EXPECT_TRUE(soon(other_threads_sleep));
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    guard_.reset();
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const owned_descriptor quiet = connect();
  say(quiet, "hm");
  const owned_descriptor accepted = accept();
  EXPECT_TRUE(is_ended(quiet, 30'000));
}

TEST_F(PortGuard, LeavesConnectionsElsewhereAlone) {
  guard(1ms);
  owned_descriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const socket_address any("127.0.0.1:0");
  ASSERT_EQ(::bind(other.get(), any.native(), any.native_size()), 0);
  ASSERT_EQ(::listen(other.get(), 1), 0);
  const socket_address there = tcp_socket::local(other.get());
  const owned_descriptor silent(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::connect(silent.get(), there.native(), there.native_size()), 0);
  const owned_descriptor let_in(::accept4(other.get(), nullptr, nullptr, SOCK_CLOEXEC));
  const owned_descriptor quiet = connect();
  say(quiet, "hm");
  const owned_descriptor first = accept();
  EXPECT_TRUE(is_ended(quiet, 30'000));
  EXPECT_FALSE(is_ended(silent, 0));
}

// Nobody is let in who does not speak: those take no descriptor.
TEST_F(PortGuard, HasTheSystemKeepWhoIsSilent) {
  guard(50ms);
  const owned_descriptor silent = connect();
  ::pollfd waiting{listening_.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&waiting, 1, 100), 0);
  say(silent, spoken());
  EXPECT_TRUE(accept());
}

TEST_F(PortGuard, LetsTheRestOfALongGreetingThrough) {
  guard(10s, true);
  if (IsSkipped()) return;
  std::string greeting(1516, '\0');
  greeting[0] = static_cast<char>(1500 & 0xff);
  greeting[1] = static_cast<char>(1500 >> 8);
  greeting[25] = 2;  // the kind of address
  const owned_descriptor peer = connect();
  say(peer, greeting.substr(0, 1000));
  const owned_descriptor accepted = accept();
  say(peer, greeting.substr(1000));
  std::string got(greeting.size(), 'x');
  const ::timeval limit{30, 0};
  ASSERT_EQ(::setsockopt(accepted.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
  EXPECT_EQ(::recv(accepted.get(), got.data(), got.size(), MSG_WAITALL),
            static_cast<::ssize_t>(got.size()));
  EXPECT_TRUE(got == greeting);
}

TEST_F(PortGuard, SendsAwayWhoDoesNotGreet) {
  guard(50ms, true);
  if (IsSkipped()) return;
  owned_descriptor scanner = connect();
  say(scanner, std::string(100, '\0'));
  scanner = owned_descriptor();  // leaves: the system lets it in now, without what it said
  const owned_descriptor accepted = accept();
  EXPECT_TRUE(is_ended(accepted, 30'000));
  EXPECT_EQ(tcp_socket::received(accepted.get()), 0U);
}

TEST_F(PortGuard, TellsOnceOfAPortThatIsLost) {
  guard(10s);
  const owned_descriptor peer = connect();
  say(peer, spoken());
  const owned_descriptor accepted = accept();
  const owned_descriptor last = connect();
  // As UCX does in answer to a knock.
  say(last, spoken());
  listening_ = owned_descriptor();
  EXPECT_TRUE(soon([this] { return lost_ > 0; }));
  EXPECT_EQ(lost_at_, address_.port());
  EXPECT_EQ(lost_, 1);
}

TEST_F(PortGuard, GivesTheNumberOfALostPortToNobody) {
  guard(10s);
  const int number = listening_.get();
  const owned_descriptor peer = connect();
  say(peer, spoken());
  listening_ = owned_descriptor();
  ASSERT_TRUE(soon([this] { return lost_ > 0; }));
  guard_.reset();
  EXPECT_NE(::fcntl(number, F_GETFD), -1);
  EXPECT_EQ(tcp_socket::number(number), 0U) << "no socket";
}

/// A guard has so many descriptors of its own. It has more while it looks at who is there, which
/// must not count: so descriptors are made few before it begins.
constexpr std::size_t of_guard = 3;

/// So long as many descriptors are left.
class few_descriptors {
 public:
  explicit few_descriptors(std::size_t left) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    ::rlimit few = before_;
    few.rlim_cur = 256;
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    while (count_descriptors().left() > left) taken_.emplace_back(::dup(STDERR_FILENO));
  }
  ~few_descriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  few_descriptors(const few_descriptors&) = delete;
  few_descriptors& operator=(const few_descriptors&) = delete;

  void free(std::size_t count) { taken_.resize(taken_.size() - count); }

 private:
  ::rlimit before_ = {};
  std::deque<owned_descriptor> taken_;
};

TEST_F(PortGuard, LetsNobodyInWhereDescriptorsRunShort) {
  if (count_descriptors().open > 150) GTEST_SKIP() << "this process has too many already";
  few_descriptors few(66 + of_guard);
  guard(10s);
  const owned_descriptor first = connect_as_last();
  const owned_descriptor next = knock(address_);
  EXPECT_FALSE(is_connected(next, 100));
  few.free(60);
  EXPECT_TRUE(soon([this] { return let_in_.load(); }));
  EXPECT_TRUE(is_connected(next, 30'000));  // TCP has asked again
}

TEST_F(PortGuard, LetsInWhoGreetsAloneWhenItLetsInAgain) {
  if (count_descriptors().open > 150) GTEST_SKIP() << "this process has too many already";
  few_descriptors few(66 + of_guard);
  guard(10s, true);
  if (IsSkipped()) return;
  std::string greeting(62, '\0');
  greeting[0] = 46;
  greeting[25] = 2;  // the kind of address
  const owned_descriptor greets = connect();
  say(greets, greeting);
  const owned_descriptor first = accept();
  const owned_descriptor next = knock(address_);
  EXPECT_TRUE(soon([this] { return !let_in_; }));
  few.free(60);
  EXPECT_TRUE(soon([this] { return let_in_.load(); }));
  owned_descriptor scanner = connect();
  say(scanner, std::string(100, '\0'));
  scanner = owned_descriptor();  // leaves: the system lets it in now, without what it said
  const owned_descriptor second = accept();
  EXPECT_EQ(tcp_socket::received(second.get()), 0U);
}

TEST_F(PortGuard, OpensPortsForDataWhenItEnds) {
  if (count_descriptors().open > 150) GTEST_SKIP() << "this process has too many already";
  few_descriptors few(66 + of_guard);
  guard(10s);
  const owned_descriptor first = connect_as_last();
  guard_.reset();
  EXPECT_TRUE(is_connected(knock(address_), 30'000));
}

TEST_F(PortGuard, ClosesPortsThatComeWhereDescriptorsAreShort) {
  if (count_descriptors().open > 150) GTEST_SKIP() << "this process has too many already";
  few_descriptors few(66 + of_guard);
  guard(10s);
  const owned_descriptor first = connect_as_last();
  const owned_descriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const socket_address any("127.0.0.1:0");
  ASSERT_EQ(::bind(other.get(), any.native(), any.native_size()), 0);
  ASSERT_EQ(::listen(other.get(), 100), 0);
  const socket_address there = tcp_socket::local(other.get());
  guard_->add({{other.get(), tcp_socket::number(other.get()), there, false}});
  EXPECT_FALSE(is_connected(knock(there), 100));
}

// UCX may have closed its socket, and the program opened another one.
TEST_F(PortGuard, LeavesASocketAloneThatHasTheDescriptorOfAPort) {
  guard(10s);
  const owned_descriptor other(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const socket_address any("127.0.0.1:0");
  ASSERT_EQ(::bind(other.get(), any.native(), any.native_size()), 0);
  ASSERT_EQ(::listen(other.get(), 100), 0);
  const std::uint64_t number_before = tcp_socket::number(listening_.get());
  guard_->add({{other.get(), number_before, tcp_socket::local(other.get()), false}});
  int waits = -1;
  ::socklen_t size = sizeof waits;
  ASSERT_EQ(::getsockopt(other.get(), IPPROTO_TCP, TCP_DEFER_ACCEPT, &waits, &size), 0);
  EXPECT_EQ(waits, 0);
}

TEST_F(PortGuard, TurnsAwayWhoWaitsWhereThereIsNoDescriptor) {
  if (count_descriptors().open > 150) GTEST_SKIP() << "this process has too many already";
  std::deque<owned_descriptor> peers;
  for (int i = 0; i < 3; ++i) {
    peers.push_back(connect());
    say(peers.back(), spoken());
  }
  // Who speaks later waits outside, for the doors are closed.
  ASSERT_TRUE(soon([this] { return waiting() == 3; }));
  few_descriptors few(of_guard);
  guard(10s);
  for (const owned_descriptor& each : peers) EXPECT_TRUE(is_ended(each, 30'000));
}

// Nobody could take the filter away from who needs several segments.
TEST_F(PortGuard, LetsEverythingThroughWhereItCanNotRun) {
  if (count_descriptors().open > 150) GTEST_SKIP() << "this process has too many already";
  {
    const few_descriptors none(0);
    guard(10s, true);
  }
  if (IsSkipped()) return;
  EXPECT_FALSE(guard_->is_running());
  const owned_descriptor next = connect();
  say(next, "anything");
  const owned_descriptor accepted = accept();
  ::pollfd heard{accepted.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&heard, 1, 30'000), 1);
}

}  // namespace
}  // namespace ucx::detail
