// What others of the machine reach of a server by default: another user, one of the server's group,
// and a process in another network namespace. With the tool, plain UCX, sockets, and the system's
// calls: nothing, no name, no byte.
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/basics/changed_variable.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/process/own_namespace.hpp"
#include "support/tool/tool.hpp"
#include "support/transports/foreign_ucx.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr ::uid_t outsiders_user = 12345;

/// Another process of the machine, as it differs from the server's user.
struct outsider {
  const char* name;
  bool has_group;
  bool has_network;
};

void PrintTo(const outsider& of, std::ostream* out) { *out << of.name; }

/// What one has reached, as bits of an exit code.
enum reached : int {
  by_tokens = 1,
  by_process = 2,
  by_segments = 4,
  by_port = 8,
  by_unix_socket = 16,
  by_ucx = 32,
  not_tried = 64,
};

class Isolation : public ::testing::TestWithParam<outsider> {
 protected:
  static constexpr const char* secret = "a secret text";

  void SetUp() override {
    if (::geteuid() != 0 || ::access("/usr/bin/setpriv", X_OK) != 0) {
      GTEST_SKIP() << "this process may not become another user";
    }
    if (!GetParam().has_network) {
      const own_namespace network({"--net"});
      if (!network.why_not().empty()) GTEST_SKIP() << network.why_not();
    }
    if (as_outsider({"--version"}).code != 0) {
      GTEST_SKIP() << "another user may not run this program";
    }
    for (const auto& each : {folder_ / "", folder_ / "run", folder_ / "run/ucxio"}) {
      std::filesystem::permissions(each, std::filesystem::perms(0711));
    }
    for (const auto& each : std::filesystem::directory_iterator(folder_ / "run/ucxio")) {
      socket_ = each.path().string();
    }
    ASSERT_FALSE(socket_.empty());
  }

  /// Runs the tool as that process, which has no token.
  command_result as_outsider(const std::vector<std::string>& arguments) const {
    const changed_variable config("XDG_CONFIG_HOME", "/tmp/nothing-of-this-user");
    const changed_variable place("XDG_RUNTIME_DIR", "/tmp");
    std::vector<std::string> line;
    if (!GetParam().has_network) line = {"/usr/bin/unshare", "--net"};
    const std::string group = GetParam().has_group ? std::to_string(::getegid()) : "12345";
    line.insert(line.end(), {"/usr/bin/setpriv", "--reuid=12345", "--regid=" + group,
                             "--clear-groups", tool_program()});
    line.insert(line.end(), arguments.begin(), arguments.end());
    const std::string program = line.front();
    line.erase(line.begin());
    return command(program, line).finish(std::chrono::seconds(60));
  }
  /// Runs `work` in a child that is that process; returns the exit code.
  static int in_outsider(const outsider& as, const std::function<int()>& work) {
    const ::pid_t child = ::fork();
    if (child == 0) {
      const ::gid_t group = as.has_group ? ::getegid() : outsiders_user;
      if (!as.has_network && ::unshare(CLONE_NEWNET) != 0) ::_exit(not_tried);
      if (!as.has_network) raise_loopback();
      if (::setgroups(0, nullptr) != 0 || ::setresgid(group, group, group) != 0 ||
          ::setresuid(outsiders_user, outsiders_user, outsiders_user) != 0) {
        ::_exit(not_tried);
      }
      ::_exit(work());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::uint16_t port() const {
    return static_cast<std::uint16_t>(
        std::stoi(server_.url().substr(server_.url().rfind(':') + 1)));
  }
  std::string url(const std::string& scheme, const std::string& name) const {
    return scheme + server_.url().substr(std::string("ucxs").size()) + name;
  }

  /// Returns what this process reaches without the library.
  int reach() {
    int all = 0;
    if (::open((folder_ / "config/ucxio/tokens").c_str(), O_RDONLY | O_CLOEXEC) >= 0) {
      all |= by_tokens;
    }
    if (looks_into_server()) all |= by_process;
    if (attaches_segments()) all |= by_segments;
    if (hears_a_name_at_port()) all |= by_port;
    if (is_welcome_at_socket()) all |= by_unix_socket;
    return all;
  }

  const temporary_directory folder_;
  const changed_variable config_{"XDG_CONFIG_HOME", (folder_ / "config").c_str()};
  const changed_variable run_{"XDG_RUNTIME_DIR", make_run().c_str()};
  const changed_variable token_{"UCXIO_TOKEN", nullptr};
  tool_server server_{{"--store", make_store(), "--writable", "--pipes"}};
  std::string socket_;

 private:
  std::string make_run() const {
    std::filesystem::create_directory(folder_ / "run");
    std::filesystem::permissions(folder_ / "run", std::filesystem::perms::owner_all);
    return (folder_ / "run").string();
  }
  std::string make_store() const {
    std::filesystem::create_directory(folder_ / "store");
    folder_.make("store/notes.txt", secret);
    std::filesystem::permissions(folder_ / "store", std::filesystem::perms::owner_all);
    return (folder_ / "store").string();
  }
  bool looks_into_server() {
    const std::string at = "/proc/" + std::to_string(server_.process().pid());
    for (const char* const each : {"/mem", "/maps", "/environ"}) {
      if (::open((at + each).c_str(), O_RDONLY | O_CLOEXEC) >= 0) return true;
    }
    std::error_code ec;
    const std::filesystem::directory_iterator files(at + "/fd", ec);
    if (!ec) return true;
    std::array<char, 8> into;
    const ::iovec here{into.data(), into.size()};
    const ::iovec there{into.data(), into.size()};  // some address
    return ::process_vm_readv(server_.process().pid(), &here, 1, &there, 1, 0) >= 0 ||
           errno != EPERM;
  }
  static bool attaches_segments() {
    std::ifstream list("/proc/sysvipc/shm");
    std::string line;
    std::getline(list, line);
    while (std::getline(list, line)) {
      std::istringstream words(line);
      long key = 0;
      int id = 0;
      words >> key >> id;
      if (::shmat(id, nullptr, 0) != reinterpret_cast<void*>(-1)) return true;
    }
    return false;
  }
  /// Returns all that comes at a socket within a moment of these words.
  static std::string answer_to(int family, const ::sockaddr* there, ::socklen_t size,
                               std::string_view said) {
    const int socket = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const ::timeval moment{20, 0};
    ::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof moment);
    std::string heard;
    if (::connect(socket, there, size) == 0) {
      ::send(socket, said.data(), said.size(), MSG_NOSIGNAL);
      ::shutdown(socket, SHUT_WR);
      std::array<char, 4096> part;
      for (::ssize_t read = 1; read > 0;) {
        read = ::recv(socket, part.data(), part.size(), 0);
        if (read > 0) heard.append(part.data(), static_cast<std::size_t>(read));
      }
    }
    ::close(socket);
    return heard;
  }
  /// The preambles of this library and of UCX, a hello of TLS's, HTTP, and silence.
  bool hears_a_name_at_port() const {
    ::sockaddr_in there = {};
    there.sin_family = AF_INET;
    there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    there.sin_port = htons(port());
    std::string all;
    for (const std::string_view said :
         {std::string_view("UXSC\1\0\0\0", 8), std::string_view("UXRDUXRD"),
          std::string_view("\x16\3\1\0\4\1\0\0\0", 9), std::string_view("GET / HTTP/1.1\r\n\r\n"),
          std::string_view()}) {
      all += answer_to(AF_INET, reinterpret_cast<const ::sockaddr*>(&there), sizeof there, said);
    }
    return all.find("notes") != all.npos || all.find("secret") != all.npos ||
           all.find("UXSC") != all.npos;
  }
  bool is_welcome_at_socket() const {
    ::sockaddr_un there = {};
    there.sun_family = AF_UNIX;
    socket_.copy(there.sun_path, sizeof there.sun_path - 1);
    const std::string heard = answer_to(AF_UNIX, reinterpret_cast<const ::sockaddr*>(&there),
                                        sizeof there, std::string_view("UXSC\1\0\0\0", 8));
    return heard.starts_with(std::string_view("UXSC\1\0\0\0", 8));
  }
};

TEST_P(Isolation, IsFromTheTool) {
  folder_.make("mine", "mine");
  const auto expect_nothing = [](const command_result& done) {
    EXPECT_TRUE(done.in_time);
    EXPECT_NE(done.code, 0);
    EXPECT_THAT(done.out + done.err, Not(HasSubstr("notes")));
    EXPECT_THAT(done.out + done.err, Not(HasSubstr("secret")));
  };
  std::vector<std::string> servers{url("ucxs", ""), url("ucx+tcp", ""), url("ucx", ""),
                                   "ucx+unix://" + socket_};
  for (const std::string& each : servers) {
    SCOPED_TRACE(each);
    expect_nothing(as_outsider({"ls", "--timeout", "5", each}));
    expect_nothing(as_outsider({"info", "--timeout", "5", each}));
    expect_nothing(as_outsider({"cp", "--timeout", "5", (folder_ / "mine").string(), each + "/x"}));
    expect_nothing(as_outsider({"pipe", "receive", "--timeout", "5", each + "/x"}));
    // The client says the name that it was asked for; so the bytes are looked for.
    const command_result read = as_outsider({"cat", "--timeout", "5", each + "/notes.txt"});
    EXPECT_NE(read.code, 0);
    EXPECT_EQ(read.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "store/x"));
  EXPECT_EQ(run_tool({"cat", server_.url("notes.txt")}).out, secret);
}

TEST_P(Isolation, IsFromTheSystemsCalls) {
  EXPECT_EQ(in_outsider(GetParam(), [&] { return reach(); }), 0);
  // Else that says nothing: the server's user reaches what is tried here.
  EXPECT_EQ(reach() & (by_tokens | by_process | by_unix_socket),
            by_tokens | by_process | by_unix_socket);
  EXPECT_EQ(run_tool({"cat", server_.url("notes.txt")}).out, secret);
}

/// It connects, and flushes, which needs an answer of the other side's UCX.
int reach_by_ucx(std::uint16_t port) {
  const context_options alike{.transports = {"tcp"}, .devices = {"lo"}};
  ucp_context* const context = make_foreign_context(alike);
  ucp_worker* const worker = make_foreign_worker(context, foreign_threads::one_by_one);
  ::sockaddr_in there = {};
  there.sin_family = AF_INET;
  there.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  there.sin_port = htons(port);
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                      UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
  params.sockaddr.addr = reinterpret_cast<const ::sockaddr*>(&there);
  params.sockaddr.addrlen = sizeof there;
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  bool has_failed = false;
  params.err_handler = {
      [](void* told, ucp_ep_h, ucs_status_t) { *static_cast<bool*>(told) = true; }, &has_failed};
  ucp_ep_h endpoint = nullptr;
  if (ucp_ep_create(worker, &params, &endpoint) != UCS_OK) return 0;
  const ucp_request_param_t plain = {};
  const ucs_status_ptr_t flushed = ucp_ep_flush_nbx(endpoint, &plain);
  if (flushed == nullptr) return by_ucx;
  if (!UCS_PTR_IS_PTR(flushed)) return 0;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!has_failed && std::chrono::steady_clock::now() < until) {
    ucp_worker_progress(worker);
    const ucs_status_t status = ucp_request_check_status(flushed);
    if (status == UCS_OK) return by_ucx;
    if (status != UCS_INPROGRESS) return 0;
  }
  return has_failed ? 0 : not_tried;
}

TEST_P(Isolation, IsFromPlainUcx) {
  EXPECT_EQ(in_outsider(GetParam(), [&] { return reach_by_ucx(port()); }), 0);
  if (GetParam().has_network) {  // else that says nothing
    const tool_server open({"--ucx", "--store", (folder_ / "store").string()});
    const auto there =
        static_cast<std::uint16_t>(std::stoi(open.url().substr(open.url().rfind(':') + 1)));
    EXPECT_EQ(in_outsider(GetParam(), [&] { return reach_by_ucx(there); }), by_ucx);
  }
  EXPECT_EQ(run_tool({"cat", server_.url("notes.txt")}).out, secret);
}

INSTANTIATE_TEST_SUITE_P(Of, Isolation,
                         ::testing::Values(outsider{"another_user", false, true},
                                           outsider{"a_user_of_the_group", true, true},
                                           outsider{"another_network", false, false},
                                           outsider{"the_group_in_another_network", true, false}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace ucx::test
