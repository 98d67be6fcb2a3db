// Who connects to a server's ports and is none of its peers: a scanner, or somebody with another
// protocol.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/child_process.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"
#include "ucx/file_descriptor.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// Returns the ports of IPv4 at which a process listens.
std::set<std::uint16_t> ports_of(::pid_t process) {
  const std::string place = "/proc/" + std::to_string(process);
  std::set<std::string> sockets;
  for (const auto& each : std::filesystem::directory_iterator(place + "/fd")) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(each.path(), gone);
    if (target.starts_with("socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::set<std::uint16_t> found;
  std::ifstream list(place + "/net/tcp");
  for (std::string line; std::getline(list, line);) {
    std::istringstream words(line);
    std::array<std::string, 10> all;
    for (std::string& each : all) words >> each;
    if (all[3] != "0A" || !sockets.contains(all[9])) continue;
    found.insert(static_cast<std::uint16_t>(std::stoul(all[1].substr(9), nullptr, 16)));
  }
  return found;
}

class stranger {
 public:
  explicit stranger(std::uint16_t port)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const ::timeval limit{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    const int yes = 1;  // what is said at once is a segment
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    const socket_address there("127.0.0.1", port);
    connected_ = ::connect(socket_.get(), there.native(), there.native_size()) == 0;
  }
  bool connected() const noexcept { return connected_; }
  void say(const std::string& bytes) const {
    [[maybe_unused]] const ::ssize_t sent =
        ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }

 private:
  file_descriptor socket_;
  bool connected_ = false;
};

const std::pair<const char*, std::string> strange[] = {
    {"zeros", std::string(100, '\0')},
    {"many zeros", std::string(3000, '\0')},
    {"ones", std::string(100, '\xff')},
    {"many ones", std::string(3000, '\xff')},
    {"a header of zeros", std::string(16, '\0')},
    {"half a header", std::string(9, '\0')},
    {"a length, and more", std::string("\x03", 1) + std::string(99, '\0')},
    {"letters", std::string(5000, 'x')},
    {"HTTP", "GET / HTTP/1.1\r\nHost: here\r\n\r\n"},
    {"SSH", "SSH-2.0-OpenSSH_9.2\r\n"},
};

class Strangers : public testing::Test {
 protected:
  void expect_serves(const std::string& url) {
    const command_result read = run_tool({"cat", url});
    EXPECT_EQ(read.out, "one\n") << read.err;
  }

  temporary_directory folder_;
  const std::string path_ = folder_.make("notes.txt", "one\n").string();
};

TEST_F(Strangers, DoNotEndAServerByWhatTheySay) {
  tool_server server({"--ucx", path_});
  const std::set<std::uint16_t> ports = ports_of(server.process().pid());
  ASSERT_GE(ports.size(), 2U) << "one to connect to, and one for data";
  for (const auto& [what, bytes] : strange) {
    for (const std::uint16_t port : ports) {
      const stranger at_once(port);
      at_once.say(bytes);
      const stranger in_two(port);
      in_two.say(bytes.substr(0, 5));
      in_two.say(bytes.substr(5));
    }
    expect_serves(server.url("notes.txt"));
    ASSERT_TRUE(server.process().running()) << what;
  }
  EXPECT_EQ(ports_of(server.process().pid()), ports);
}

TEST_F(Strangers, KeepNoProcessorBusy) {
  tool_server server({"--ucx", path_});
  std::deque<stranger> all;
  for (const std::uint16_t port : ports_of(server.process().pid())) {
    for (const auto& [what, bytes] : strange) all.emplace_back(port).say(bytes);
  }
  const auto used = [&] {
    std::ifstream file("/proc/" + std::to_string(server.process().pid()) + "/schedstat");
    std::uint64_t nanoseconds = 0;
    file >> nanoseconds;  // of the main thread alone, where it is told at all
    std::uint64_t all_threads = nanoseconds;
    for (const auto& thread : std::filesystem::directory_iterator(
             "/proc/" + std::to_string(server.process().pid()) + "/task")) {
      std::ifstream of(thread.path() / "schedstat");
      of >> nanoseconds;
      all_threads += nanoseconds;
    }
    return std::chrono::nanoseconds(all_threads);
  };
  std::chrono::nanoseconds least = 1h;
  for (int looks = 0; looks < 8 && least > 100ms; ++looks) {
    const auto before = used();
    std::this_thread::sleep_for(500ms);
    least = std::min(least, used() - before);
  }
  EXPECT_LT(least, 100ms);
  expect_serves(server.url("notes.txt"));
}

/// This process may have so many for as long as this is there.
class descriptors_of_test {
 public:
  explicit descriptors_of_test(::rlim_t wanted) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    are_granted_ = before_.rlim_max >= wanted;
    const ::rlimit more{std::max(before_.rlim_cur, std::min(wanted, before_.rlim_max)),
                        before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &more), 0);
  }
  ~descriptors_of_test() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  descriptors_of_test(const descriptors_of_test&) = delete;
  descriptors_of_test& operator=(const descriptors_of_test&) = delete;
  bool are_granted() const noexcept { return are_granted_; }

 private:
  ::rlimit before_ = {};
  bool are_granted_ = false;
};

/// A server that may have so many descriptors, and not more; what it complains of is `said`.
child_process serve_within(int files, const std::string& path, const std::string& said) {
  return child_process("/bin/sh", {"-c",
                                   "ulimit -n " + std::to_string(files) +
                                       "; exec \"$0\" serve --ucx --quiet \"$1\" 2>\"$2\"",
                                   tool_program(), path, said});
}

/// A kind of flood, and how many descriptors the server may have.
class Floods : public Strangers,
               public testing::WithParamInterface<std::tuple<const char*, int>> {};

INSTANTIATE_TEST_SUITE_P(Of, Floods,
                         testing::Combine(testing::Values("Leaving", "Silent", "Zeros"),
                                          testing::Values(256, 1024)),
                         [](const auto& chosen) {
                           return std::get<0>(chosen.param) +
                                  ("In" + std::to_string(std::get<1>(chosen.param)));
                         });

TEST_P(Floods, LeaveAServerThatServesOrHasSaidItsEnd) {
  const auto& [kind_name, limit] = GetParam();
  const std::string kind = kind_name;
  const int many = 2 * limit;
  // Those of one port are held at a time.
  const descriptors_of_test own(static_cast<::rlim_t>(many) + 1000);
  if (!own.are_granted()) GTEST_SKIP() << "the system grants few descriptors";
  const std::filesystem::path said = folder_ / "said";
  child_process server = serve_within(limit, path_, said);
  const std::string url = server.read_line(30s).value_or("");
  ASSERT_TRUE(url.starts_with("ucx://"));
  for (const std::uint16_t port : ports_of(server.pid())) {
    std::deque<stranger> held;
    // Each that is not let in waits for a second: they are many by then.
    for (int i = 0, refused = 0; i < many && refused < 3; ++i) {
      stranger each(port);
      if (!each.connected()) ++refused;
      if (kind == "Zeros") each.say(std::string(100, '\0'));
      if (kind != "Leaving") held.push_back(std::move(each));
    }
  }
  const command_result read = run_tool({"cat", url + "/notes.txt"});
  if (read.out == "one\n") return;
  // It may be about to end.
  const std::optional<int> status = server.wait(30s);
  ASSERT_TRUE(status) << "it neither serves nor ends: " << read.err;
  ASSERT_TRUE(WIFEXITED(*status)) << "ended by signal " << WTERMSIG(*status) << ": " << read.err;
  EXPECT_EQ(WEXITSTATUS(*status), 1);
  EXPECT_NE(content_of(said).find("no file descriptor left"), std::string::npos);
}

/// Returns the beginning of one that announces 1500 bytes.
std::string begun_greeting() {
  std::string greeting(516, '\0');
  greeting[0] = static_cast<char>(1500 & 0xff);
  greeting[1] = static_cast<char>(1500 >> 8);
  greeting[25] = 2;
  return greeting;
}

TEST_F(Strangers, LeaveALineOnStderrWhereTheyLeaveNoDescriptors) {
  command server(
      "/bin/sh",
      {"-c", "ulimit -n 256; exec \"$0\" serve --ucx --quiet \"$1\"", tool_program(), path_},
      command::output::pipe);
  std::string url;
  for (std::string next = server.read(1); !next.empty() && next != "\n"; next = server.read(1)) {
    url += next;
  }
  ASSERT_TRUE(url.starts_with("ucx://")) << url;
  const auto port = static_cast<std::uint16_t>(std::stoul(url.substr(url.rfind(':') + 1)));
  const std::string greeting = begun_greeting();
  std::deque<stranger> held;
  // As many as are let in: those who come too fast for the server wait, or are not.
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (server.errors().empty() && std::chrono::steady_clock::now() < until) {
    if (held.size() < 600) {
      stranger each(port);
      each.say(greeting);
      if (each.connected()) held.push_back(std::move(each));
    }
    std::this_thread::sleep_for(1ms);
  }
  server.send_signal(SIGTERM);
  const command_result ended = server.finish();
  EXPECT_NE(ended.err.find("file descriptors are left"), std::string::npos) << ended.err;
  EXPECT_EQ(std::count(ended.err.begin(), ended.err.end(), '\n'), 1) << ended.err;
}

std::ptrdiff_t descriptors_of(::pid_t process) {
  const std::filesystem::directory_iterator all("/proc/" + std::to_string(process) + "/fd");
  return std::distance(begin(all), end(all));
}

/// Nothing is left of memory that the server has given back.
TEST_F(Strangers, DoNotKeepAServerFromItsEndByTheirNumber) {
  constexpr std::size_t many = 1500;
  const descriptors_of_test own(2 * many);
  if (!own.are_granted()) GTEST_SKIP() << "the system grants few descriptors";
  child_process server(
      "/bin/sh",
      {"-c", "MALLOC_PERTURB_=165 exec \"$0\" serve --ucx --quiet \"$1\"", tool_program(), path_});
  const std::string url = server.read_line(30s).value_or("");
  ASSERT_TRUE(url.starts_with("ucx://"));
  const auto port = static_cast<std::uint16_t>(std::stoul(url.substr(url.rfind(':') + 1)));
  std::deque<stranger> held;
  const auto until = std::chrono::steady_clock::now() + 60s;
  while (held.size() < many && std::chrono::steady_clock::now() < until) {
    stranger each(port);
    each.say(begun_greeting());
    if (each.connected()) held.push_back(std::move(each));
  }
  ASSERT_EQ(held.size(), many);
  EXPECT_TRUE(soon([&] { return descriptors_of(server.pid()) > std::ssize(held); }));
  server.send_signal(SIGTERM);
  const std::optional<int> status = server.wait(30s);
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFEXITED(*status)) << "ended by signal " << WTERMSIG(*status);
  EXPECT_EQ(WEXITSTATUS(*status), 0);
}

/// Returns what the system calls a socket; 0 for anything else.
std::uint64_t number_of(int descriptor) {
  std::uint64_t number = 0;
  ::socklen_t size = sizeof number;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &number, &size) == 0 ? number : 0;
}

/// Ends the listening of the process's sockets but the one at `kept`, as if UCX had closed them.
/// Returns of how many; none where the system does not allow it.
int shut_ports_of(::pid_t process, std::uint16_t kept) {
  // It has inherited those of clients in this process.
  std::set<std::uint64_t> own;
  for (int number = 0; number < 1000; ++number) own.insert(number_of(number));
  const file_descriptor whose(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  int shut = 0;
  for (int number = 0; number < 200; ++number) {
    const file_descriptor each(
        static_cast<int>(::syscall(SYS_pidfd_getfd, whose.get(), number, 0)));
    int listens = 0;
    ::socklen_t size = sizeof listens;
    if (!each || ::getsockopt(each.get(), SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0)
      continue;
    ::sockaddr_in at = {};
    size = sizeof at;
    if (listens == 0 || ::getsockname(each.get(), reinterpret_cast<::sockaddr*>(&at), &size) != 0 ||
        at.sin_family != AF_INET || ntohs(at.sin_port) == kept) {
      continue;
    }
    if (own.contains(number_of(each.get()))) continue;
    if (::shutdown(each.get(), SHUT_RDWR) == 0) ++shut;
  }
  return shut;
}

class ServeFailure : public testing::Test {
 protected:
  /// Expects that a server which has lost its port for data says so, and ends, whatever is loaded
  /// into it.
  void expect_end(const std::string& loaded) {
    const std::string path = folder_.make("notes.txt", "one\n").string();
    command server("/bin/sh",
                   {"-c", "LD_PRELOAD=\"$0\" exec \"$1\" serve --ucx --quiet \"$2\"", loaded,
                    tool_program(), path},
                   command::output::pipe);
    std::string url;
    for (std::string next = server.read(1); !next.empty() && next != "\n"; next = server.read(1)) {
      url += next;
    }
    ASSERT_TRUE(url.starts_with("ucx://")) << url;
    const auto port = static_cast<std::uint16_t>(std::stoul(url.substr(url.rfind(':') + 1)));
    // It hears of that when this process has the socket no more: while it has, UCX may hear twice,
    // which ends a server with 1.13.1.
    server.send_signal(SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(server.pid(), &status, WUNTRACED), server.pid());
    ASSERT_TRUE(WIFSTOPPED(status));
    const int shut = shut_ports_of(server.pid(), port);
    server.send_signal(SIGCONT);
    if (shut == 0) GTEST_SKIP() << "this system lets nobody have another process's sockets";
    const command_result ended = server.finish();
    expect_failure(ended, 1, "no file descriptor left");
  }

  const temporary_directory folder_;
};

TEST_F(ServeFailure, EndsAServerThatClientsCanNotReach) { expect_end(""); }

TEST_F(ServeFailure, IsSaidByAServerThatTakesLongToEnd) { expect_end(STUCK_END); }

TEST(ServeLimits, AreRaisedToWhatTheSystemGrants) {
  const temporary_directory folder;
  const std::string path = folder.make("notes.txt", "one\n").string();
  ::rlimit files = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max < 1000) GTEST_SKIP() << "the system grants few descriptors";
  child_process server("/bin/sh", {"-c", "ulimit -Sn 200; exec \"$0\" serve --ucx --quiet \"$1\"",
                                   tool_program(), path});
  ASSERT_TRUE(server.read_line(30s).has_value());
  ::rlimit has = {};
  ASSERT_EQ(::prlimit(server.pid(), RLIMIT_NOFILE, nullptr, &has), 0);
  EXPECT_EQ(has.rlim_cur, std::min(files.rlim_max, ::rlim_t{1} << 20U));
}

}  // namespace
}  // namespace ucx::test
