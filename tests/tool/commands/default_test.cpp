// `ucxio serve` without a word about the network: TLS on a port of loopback, with a token of this
// user that is made, and a Unix socket beside it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/child_process.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Runs the tool with directories of its own for tokens and sockets.
class ServedByDefault : public ::testing::Test {
 protected:
  ServedByDefault() {
    std::filesystem::create_directory(folder_ / "run");
    std::filesystem::permissions(folder_ / "run", std::filesystem::perms::owner_all);
    for (const char* const each : {"XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "UCXIO_TOKEN"}) {
      const char* const value = std::getenv(each);
      before_.emplace_back(each,
                           value != nullptr ? std::optional<std::string>(value) : std::nullopt);
    }
    ::setenv("XDG_CONFIG_HOME", (folder_ / "config").c_str(), 1);
    ::setenv("XDG_RUNTIME_DIR", (folder_ / "run").c_str(), 1);
    ::unsetenv("UCXIO_TOKEN");
  }
  ~ServedByDefault() override {
    for (const auto& [name, value] : before_) {
      if (value) {
        ::setenv(name, value->c_str(), 1);
      } else {
        ::unsetenv(name);
      }
    }
  }
  std::string file() const { return folder_.make("notes.txt", "a secret text").string(); }
  std::filesystem::path tokens() const { return folder_ / "config/ucxio/tokens"; }
  /// Returns the sockets beside ports.
  std::vector<std::filesystem::path> sockets() const {
    std::vector<std::filesystem::path> found;
    for (const auto& each : std::filesystem::directory_iterator(folder_ / "run/ucxio")) {
      found.push_back(each.path());
    }
    return found;
  }
  static std::string info(const std::string& url) { return run_tool({"info", url}).out; }
  static command_result as_other_user(const std::vector<std::string>& arguments) {
    std::vector<std::string> line{"--reuid=12345", "--regid=12345", "--clear-groups",
                                  tool_program()};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return command("/usr/bin/setpriv", line).finish();
  }

  const temporary_directory folder_;

 private:
  std::vector<std::pair<const char*, std::optional<std::string>>> before_;
};

TEST_F(ServedByDefault, MakesATokenAndASocketForThisUser) {
  tool_server server({file()});
  EXPECT_THAT(server.url(), StartsWith("ucxs://127.0.0.1:"));
  struct ::stat facts = {};
  ASSERT_EQ(::stat(tokens().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  EXPECT_THAT(content_of(tokens()), StartsWith("accept own ucxt1-"));
  ASSERT_EQ(sockets().size(), 1U);
  EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "a secret text");
  EXPECT_THAT(info(server.url()), HasSubstr("connection  socket/unix\nprotection  Unix socket, by "
                                            "user " +
                                            std::to_string(::geteuid()) + '\n'));
  const std::string port = server.url().substr(server.url().rfind(':'));
  EXPECT_THAT(info("ucxs://localhost" + port), HasSubstr("connection  socket/unix\n"));
  server.process().send_signal(SIGTERM);
  EXPECT_TRUE(soon([this] { return sockets().empty(); }));
}

/// A program has the same without a word.
TEST_F(ServedByDefault, IsAServerOfTheLibraryToo) {
  server owner;
  EXPECT_THAT(owner.url(), StartsWith("ucxs://127.0.0.1:"));
  const publication shown = owner.publish_file("notes.txt", file());
  EXPECT_EQ(run_tool({"cat", shown.url()}).out, "a secret text");
  EXPECT_THAT(info(owner.url()), HasSubstr("connection  socket/unix\n"));
  for (const auto& each : sockets()) std::filesystem::remove(each);
  EXPECT_EQ(run_tool({"cat", shown.url()}).out, "a secret text");
  EXPECT_THAT(info(owner.url()), HasSubstr("connection  tls/tcp\n"));
  std::filesystem::remove(tokens());
  expect_failure(run_tool({"cat", shown.url()}), 5, "there is no token");
}

TEST_F(ServedByDefault, NeedsNoTokenOfAClientOfThisUser) {
  const tool_server server({file()});
  std::filesystem::remove(tokens());
  EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "a secret text");
}

TEST_F(ServedByDefault, IsReachedByTlsWithoutItsSocket) {
  const tool_server server({file()});
  for (const auto& each : sockets()) std::filesystem::remove(each);
  EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "a secret text");
  EXPECT_THAT(info(server.url()), HasSubstr("connection  tls/tcp\nprotection  TLS 1.3, by a "
                                            "token\nidentity    token \"own\"\n"
                                            "not used    socket/unix: the server at "));
  EXPECT_THAT(info(server.url()),
              HasSubstr("RDMA        no: the connection goes over sockets, without UCX\n"));
  std::filesystem::remove(tokens());
  expect_failure(run_tool({"cat", server.url("notes.txt")}), 5, "there is no token");
}

TEST_F(ServedByDefault, IsReachedByTlsWhereATokenIsNamed) {
  const tool_server server({file()});
  std::string line = content_of(tokens());
  ASSERT_THAT(line, StartsWith("accept own "));
  line.pop_back();
  ::setenv("UCXIO_TOKEN", line.substr(std::string("accept own ").size()).c_str(), 1);
  EXPECT_THAT(info(server.url()), HasSubstr("connection  tls/tcp\n"));
  ::unsetenv("UCXIO_TOKEN");
  EXPECT_THAT(info(server.url()), HasSubstr("connection  socket/unix\n"));
  EXPECT_THAT(run_tool({"info", server.url(), "--token-file", tokens()}).out,
              HasSubstr("connection  tls/tcp\n"));
}

/// Not by the user's own file, which has none here when the agent is called.
TEST_F(ServedByDefault, HasItsAgentCalledByTheTokenThatIsNamed) {
  std::filesystem::create_directory(folder_ / "store");
  std::ofstream(folder_ / "store/x") << "a text";
  ASSERT_EQ(run_tool({"token", "new", "own"}).code, 0);
  const tool_server server({"--tls", "--agent", "--store", (folder_ / "store").string()});
  const std::filesystem::path named = folder_ / "named";
  std::filesystem::copy_file(tokens(), named);
  ::setenv("XDG_CONFIG_HOME", (folder_ / "none").c_str(), 1);
  const std::string copy = folder_ / "copy";
  expect_failure(run_tool({"cp", "--compress", "zstd", server.url("x"), copy}), 5,
                 "there is no token");
  const command_result copied =
      run_tool({"cp", "--compress", "zstd", "--token-file", named, server.url("x"), copy});
  EXPECT_EQ(copied.code, 0) << copied.err;
  EXPECT_EQ(content_of(copy), "a text");
}

/// The command and the agent both come by the Unix socket.
TEST_F(ServedByDefault, HasAnAgentForCommandsThatNameNoToken) {
  std::filesystem::create_directory(folder_ / "store");
  std::ofstream(folder_ / "store/x") << "a text";
  const tool_server server({"--agent", "--fetch-from", "127.0.0.1", "--writable", "--store",
                            (folder_ / "store").string()});
  const std::string copy = folder_ / "copy";
  const command_result compressed = run_tool({"cp", "--compress", "zstd", server.url("x"), copy});
  EXPECT_EQ(compressed.code, 0) << compressed.err;
  EXPECT_EQ(content_of(copy), "a text");
  const command_result direct = run_tool({"cp", "--direct", server.url("x"), server.url("y")});
  EXPECT_EQ(direct.code, 0) << direct.err;
  EXPECT_EQ(content_of(folder_ / "store/y"), "a text");
}

TEST_F(ServedByDefault, SaysThatItsAgentComesByAnotherWay) {
  const tool_server server({"--agent", file()});
  expect_failure(run_tool({"cp", "--compress", "zstd", "--token-file", tokens(),
                           server.url("notes.txt"), (folder_ / "copy").string()}),
                 5, "the agent came by the server's Unix socket, this command by TLS");
}

/// Others are not told to come to a pipe whose own end would be refused.
TEST_F(ServedByDefault, TellsOfNoPipeThatItsOwnEndIsNotLetInto) {
  const std::filesystem::path named = folder_ / "named";
  ASSERT_EQ(run_tool({"token", "new", "bob", "--token-file", named}).code, 0);
  for (const std::string end : {"receive", "send"}) {
    expect_failure(run_tool({"pipe", end, "--tls", "--token-file", named, "--timeout", "20"}), 5,
                   "there is no token");
  }
}

/// In /proc root makes nothing, either.
TEST_F(ServedByDefault, HasTheUnixSocketAloneWhereNoTokenCanBeMade) {
  ::setenv("XDG_CONFIG_HOME", "/proc", 1);
  command server(tool_program(), {"serve", "--quiet", file()}, command::output::pipe);
  std::string url;
  for (std::string next = server.read(1); !next.empty() && next != "\n"; next = server.read(1)) {
    url += next;
  }
  EXPECT_THAT(url, StartsWith("ucx+unix://"));
  EXPECT_THAT(server.errors(), HasSubstr("note: there is no TLS"));
  EXPECT_THAT(server.errors(), HasSubstr("making the token of this user"));
  EXPECT_EQ(run_tool({"cat", url + "/notes.txt"}).out, "a secret text");
  const command_result at_a_port = run_tool({"serve", "--bind", "127.0.0.1:1", file()});
  EXPECT_NE(at_a_port.code, 0);
  EXPECT_THAT(at_a_port.err, HasSubstr("making the token of this user"));
}

/// A file that nobody listens at any more, and one that is another user's.
TEST_F(ServedByDefault, IsReachedByTlsWhereItsSocketIsNone) {
  const tool_server server({file()});
  ASSERT_EQ(sockets().size(), 1U);
  const std::filesystem::path place = sockets().front();
  std::filesystem::remove(place);
  ::sockaddr_un at = {};
  at.sun_family = AF_UNIX;
  const std::string path = place.string();
  ASSERT_LT(path.size(), sizeof at.sun_path);
  std::copy(path.begin(), path.end(), at.sun_path);
  const int bound = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(bound, reinterpret_cast<const ::sockaddr*>(&at), sizeof at), 0);
  ::close(bound);
  EXPECT_THAT(info(server.url()), HasSubstr("connection  tls/tcp\n"));
  EXPECT_THAT(info(server.url()), HasSubstr("not used    socket/unix: "));
  if (::geteuid() != 0) return;
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_THAT(info(server.url()), HasSubstr("connection  tls/tcp\n"));
}

TEST_F(ServedByDefault, RemovesWhatAKilledServerLeft) {
  std::string port;
  {
    tool_server killed({file()});
    killed.process().kill();
  }
  ASSERT_EQ(sockets().size(), 1U);
  const std::filesystem::path left = sockets().front();
  const tool_server next({file()});
  ASSERT_EQ(sockets().size(), 1U);
  EXPECT_NE(sockets().front(), left);
  EXPECT_THAT(info(next.url()), HasSubstr("connection  socket/unix\n"));
}

TEST_F(ServedByDefault, MakesOneTokenHoweverManyBegin) {
  std::vector<std::unique_ptr<command>> begun;
  for (int i = 0; i < 6; ++i) {
    begun.push_back(std::make_unique<command>(tool_program(),
                                              std::vector<std::string>{"serve", "--quiet", file()},
                                              command::output::pipe));
  }
  std::vector<std::string> urls;
  for (const auto& each : begun) {
    std::string url;
    while (!url.ends_with('\n')) {
      const std::string more = each->read(1);
      ASSERT_FALSE(more.empty());
      url += more;
    }
    url.pop_back();
    urls.push_back(url);
  }
  const std::string made = content_of(tokens());
  EXPECT_EQ(std::count(made.begin(), made.end(), '\n'), 1) << made;
  for (const auto& each : sockets()) std::filesystem::remove(each);
  for (const std::string& url : urls) {
    EXPECT_EQ(run_tool({"cat", url + "/notes.txt"}).out, "a secret text") << url;
  }
}

TEST_F(ServedByDefault, KeepsATokenThatIsThere) {
  const std::string token = run_tool({"token", "new", "own"}).out;
  const tool_server server({file()});
  EXPECT_EQ(content_of(tokens()), "accept own " + token);
}

/// That of a client is no token of this user.
TEST_F(ServedByDefault, MakesATokenBesideThoseOfClients) {
  const std::string token = run_tool({"token", "new", "alice"}).out;
  const tool_server server({file()});
  EXPECT_THAT(content_of(tokens()), StartsWith("accept alice " + token + "accept own ucxt1-"));
}

TEST_F(ServedByDefault, LetsNoOtherUserIn) {
  if (::geteuid() != 0 || ::access("/usr/bin/setpriv", X_OK) != 0) {
    GTEST_SKIP() << "this process may not become another user";
  }
  if (as_other_user({"--version"}).code != 0) {
    GTEST_SKIP() << "another user may not run this program";
  }
  const tool_server server({file()});
  std::filesystem::permissions(folder_ / "", std::filesystem::perms(0711));
  std::filesystem::permissions(folder_ / "run", std::filesystem::perms(0711));
  const std::string at = server.url().substr(std::string("ucxs").size());
  ::setenv("XDG_RUNTIME_DIR", "/tmp", 1);
  ::setenv("XDG_CONFIG_HOME", "/tmp/nothing-of-this-user", 1);
  expect_failure(as_other_user({"ls", "ucxs" + at}), 5, "there is no token");
  expect_failure(as_other_user({"ls", "ucx+tcp" + at}), 5, "ucxs://");
  expect_failure(as_other_user({"ls", "ucx" + at}), 5, "ucxs://");
  const command_result direct = as_other_user({"ls", "ucx+unix://" + sockets().front().string()});
  EXPECT_EQ(direct.code, 5) << direct.err;
  EXPECT_THAT(direct.out + direct.err, Not(HasSubstr("notes")));
}

/// Another user listens at the port, as one could where a server of this user was.
TEST_F(ServedByDefault, IsNoServerOfAnotherUserUnlessItsPortIsNamed) {
  if (::geteuid() != 0 || ::access("/usr/bin/setpriv", X_OK) != 0) {
    GTEST_SKIP() << "this process may not become another user";
  }
  if (as_other_user({"--version"}).code != 0) {
    GTEST_SKIP() << "another user may not run this program";
  }
  const std::string token = run_tool({"token", "new", "bob"}).out;
  const tool_server server({file()});
  const std::filesystem::path others = folder_ / "others";
  const auto write = [&](const std::string& lines) {
    std::filesystem::create_directories(others / "ucxio");
    std::filesystem::remove(others / "ucxio/tokens");
    std::ofstream(others / "ucxio/tokens") << lines;
    for (const auto& each : {others, others / "ucxio", others / "ucxio/tokens"}) {
      ASSERT_EQ(::chmod(each.c_str(), each.filename() == "tokens" ? 0600 : 0700), 0);
      ASSERT_EQ(::chown(each.c_str(), 12345, 12345), 0);
    }
  };
  std::filesystem::permissions(folder_ / "", std::filesystem::perms(0711));
  ::setenv("XDG_RUNTIME_DIR", "/tmp", 1);
  ::setenv("XDG_CONFIG_HOME", others.c_str(), 1);
  const std::string port = server.url().substr(std::string("ucxs://127.0.0.1:").size());
  // Its own token, and one that it has for any port of this host.
  write("accept own " + token);
  const std::string stranger = "a process of user 0 listens at 127.0.0.1:" + port;
  expect_failure(as_other_user({"cat", server.url("notes.txt")}), 5, stranger);
  write("use 127.0.0.1 " + token);
  expect_failure(as_other_user({"cat", server.url("notes.txt")}), 5, stranger);
  write("use 127.0.0.1:" + port + ' ' + token);
  EXPECT_EQ(as_other_user({"cat", server.url("notes.txt")}).out, "a secret text");
  ::setenv("UCXIO_TOKEN", token.substr(0, token.size() - 1).c_str(), 1);
  write("");
  EXPECT_EQ(as_other_user({"cat", server.url("notes.txt")}).out, "a secret text");
}

TEST_F(ServedByDefault, TellsAClientOfUcxWhatItSpeaks) {
  const tool_server server({file()});
  const std::string at = server.url("notes.txt").substr(std::string("ucxs").size());
  EXPECT_TRUE(soon([&] {  // it asks the server, for a second at most
    return run_tool({"cat", "ucx" + at}).err.find("its URL is " + server.url()) !=
           std::string::npos;
  }));
  EXPECT_EQ(run_tool({"cat", "ucx" + at}).code, 5);
  expect_failure(run_tool({"cat", "ucx+tcp" + at}), 5, "ucxs://");
  const tool_server clear({"--socket", file()});
  const std::string there = clear.url("notes.txt").substr(std::string("ucx+tcp").size());
  EXPECT_TRUE(soon([&] {
    return run_tool({"cat", "ucx" + there}).err.find("its URL is " + clear.url()) !=
           std::string::npos;
  }));
  EXPECT_EQ(run_tool({"cat", "ucx" + there}).code, 4);
}

TEST_F(ServedByDefault, HasOneTransportWhereOneIsNamed) {
  {
    const tool_server server({"--ucx", file()});
    EXPECT_THAT(server.url(), StartsWith("ucx://127.0.0.1:"));
    EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "a secret text");
  }
  EXPECT_FALSE(std::filesystem::exists(tokens()));
  ASSERT_EQ(run_tool({"token", "new", "alice"}).code, 0);
  const tool_server server({"--tls", file()});
  EXPECT_THAT(info(server.url()), HasSubstr("connection  tls/tcp\n"));
  EXPECT_TRUE(!std::filesystem::exists(folder_ / "run/ucxio") || sockets().empty());
}

TEST_F(ServedByDefault, NeedsATokenBeyondLoopback) {
  expect_failure(run_tool({"serve", "--bind", "0.0.0.0:0", file()}), 5, "ucxio token new");
  EXPECT_FALSE(std::filesystem::exists(tokens()));
  ASSERT_EQ(run_tool({"token", "new", "alice"}).code, 0);
  const tool_server server({"--bind", "0.0.0.0:0", file()});
  const std::string port = server.url().substr(server.url().rfind(':'));
  EXPECT_THAT(info("ucxs://127.0.0.1" + port), HasSubstr("connection  tls/tcp\n"));
}

TEST_F(ServedByDefault, SaysWhichOptionNeedsWhich) {
  expect_failure(run_tool({"serve", "--insecure", file()}), 2, "--insecure: needs --ucx");
  expect_failure(run_tool({"serve", "--address-file", "a", file()}), 2,
                 "--address-file: needs --ucx");
  expect_failure(run_tool({"serve", "--ucx", "--bind", "0.0.0.0:0", file()}), 5, "--insecure");
  expect_failure(run_tool({"serve", "--ucx", "--tls", file()}), 2, "--ucx");
  expect_failure(run_tool({"serve", "--ucx", "--unix", file()}), 2, "--ucx");
}

/// `ucxio serve --invite`, and the client that it is for, whose tokens are elsewhere.
class Invited : public ServedByDefault {
 protected:
  Invited() {
    server_ = std::make_unique<command>(
        tool_program(),
        std::vector<std::string>{"serve", "--quiet", "--tls", "--invite=bob", file()},
        command::output::pipe);
    for (std::string next = server_->read(1); !next.empty() && next != "\n";
         next = server_->read(1)) {
      url_ += next;
    }
    EXPECT_TRUE(soon([&] { return server_->errors().find("its code: ucxi1-") != url_.npos; }));
    const std::string said = server_->errors();
    const std::size_t at = said.find("ucxi1-");
    if (at != said.npos) code_ = said.substr(at, said.find('\n', at) - at);
  }
  static command_result shell(const std::string& line) {
    return command("/bin/sh", {"-c", line}).finish();
  }
  std::string clients() const { return "--token-file " + (folder_ / "clients").string(); }
  command_result log_in(const std::string& code) const {
    return shell("printf '%s\n' '" + code + "' | " + tool_program() + " login " + url_ + ' ' +
                 clients());
  }

  std::unique_ptr<command> server_;
  std::string url_;
  std::string code_;
};

TEST_F(Invited, GetsATokenOfItsOwnByACodeOfOneUse) {
  EXPECT_THAT(server_->errors(), HasSubstr("ucxio login " + url_));
  const command_result in = log_in(code_);
  EXPECT_EQ(in.code, 0) << in.err;
  struct ::stat facts = {};
  ASSERT_EQ(::stat((folder_ / "clients").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 07777U, 0600U);
  const std::string cat = tool_program() + " cat " + url_ + "/notes.txt ";
  EXPECT_EQ(shell(cat + clients()).out, "a secret text");
  EXPECT_EQ(run_tool({"token", "list"}).out, "accept own\naccept bob\n");
  EXPECT_EQ(run_tool({"token", "list", "--token-file", folder_ / "clients"}).out,
            "use    " + url_.substr(std::string("ucxs://").size()) + '\n');
  expect_failure(log_in(code_), 5, "refused the code");
  ASSERT_EQ(run_tool({"token", "remove", "bob"}).code, 0);
  EXPECT_TRUE(soon([&] { return shell(cat + clients()).code == 5; }));
}

TEST_F(Invited, NeedsTheCode) {
  std::string wrong = code_;
  wrong[20] = wrong[20] == 'a' ? 'b' : 'a';
  expect_failure(log_in(wrong), 1, "is no code");
  expect_failure(log_in("ucxt1-" + code_.substr(6)), 1, "is no code");
  const std::string another =
      "ucxi1-aebagbafaydqqcikbmga2dqpcaireeyuculbogazdinryhi6d4qgtjt5d3dtxasm";
  expect_failure(log_in(another), 5, "refused the code");
  EXPECT_EQ(log_in(code_).code, 0) << "it still counts";
}

TEST_F(ServedByDefault, InvitesByTlsOnly) {
  expect_failure(run_tool({"serve", "--invite", "--ucx", file()}), 2, "--invite");
  expect_failure(run_tool({"serve", "--invite", "--socket", file()}), 2, "--invite");
  expect_failure(run_tool({"login", "ucx://127.0.0.1:1"}), 2, "ucxs://");
  expect_failure(run_tool({"serve", "--invite=a b", file()}), 2, "the name of a token");
}

/// Lets programs of this process dump their cores, where it may.
class core_dumps {
 public:
  core_dumps() {
    ::getrlimit(RLIMIT_CORE, &before_);
    ::rlimit wanted = before_;
    if (::geteuid() == 0) wanted.rlim_max = RLIM_INFINITY;
    wanted.rlim_cur = wanted.rlim_max;
    are_allowed_ = ::setrlimit(RLIMIT_CORE, &wanted) == 0 && wanted.rlim_cur != 0;
  }
  ~core_dumps() { ::setrlimit(RLIMIT_CORE, &before_); }
  core_dumps(const core_dumps&) = delete;
  core_dumps& operator=(const core_dumps&) = delete;
  bool are_allowed() const noexcept { return are_allowed_; }

 private:
  ::rlimit before_ = {};
  bool are_allowed_ = false;
};

TEST_F(ServedByDefault, LeavesNoCoreDumpWhereItIsAskedNot) {
  const core_dumps dumps;
  if (!dumps.are_allowed()) GTEST_SKIP() << "the process may not raise its limit";
  for (const bool asked : {false, true}) {
    std::vector<std::string> words{file()};
    if (asked) words.insert(words.begin(), "--no-core");
    tool_server server(words);
    const std::string limits =
        content_of("/proc/" + std::to_string(server.process().pid()) + "/limits");
    const auto none = ::testing::ContainsRegex("Max core file size +0 +0");
    if (asked) {
      EXPECT_THAT(limits, none);
    } else {
      EXPECT_THAT(limits, Not(none));
    }
  }
  const tool_server server({file()});
  EXPECT_EQ(run_tool({"cat", "--no-core", server.url("notes.txt")}).out, "a secret text");
}

/// The system gives what tells of its memory to root: no process of its user may look into it.
TEST_F(ServedByDefault, IsLookedIntoByNoProcessWhereItIsAskedNot) {
  const std::string notes = file();
  const bool is_root = ::geteuid() == 0;
  if (is_root && as_other_user({"--version"}).code != 0) {
    GTEST_SKIP() << "another user may not run this program";
  }
  const ::uid_t user = is_root ? 12345 : ::geteuid();
  if (is_root) {
    std::filesystem::permissions(folder_ / "", std::filesystem::perms(0711));
    ASSERT_EQ(::chown((folder_ / "run").c_str(), user, user), 0);
  }
  for (const bool asked : {false, true}) {
    std::vector<std::string> line{"serve", "--quiet", "--unix", notes};
    if (asked) line.insert(line.begin() + 1, "--no-core");
    line.insert(line.begin(), tool_program());
    if (is_root) {
      line.insert(line.begin(),
                  {"/usr/bin/setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"});
    }
    const std::string program = line.front();
    line.erase(line.begin());
    child_process server(program, line);
    ASSERT_TRUE(server.read_line(patience(std::chrono::seconds(30)))) << "it did not start";
    struct ::stat memory = {};
    ASSERT_EQ(::stat(("/proc/" + std::to_string(server.pid()) + "/maps").c_str(), &memory), 0);
    EXPECT_EQ(memory.st_uid, asked ? 0U : user);
  }
}

}  // namespace
}  // namespace ucx::test
