#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/process/own_namespace.hpp"
#include "support/tool/tool.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Usage, IsToldOfWrongArguments) {
  const std::vector<std::vector<std::string>> wrong{
      {},
      {"eat"},
      {"--wrong"},
      {"cat"},
      {"cat", "--wrong", "ucx://127.0.0.1:1/x"},
      {"ls"},
      {"ls", "ucx://127.0.0.1:1", "ucx://127.0.0.1:1"},
      {"ls", "ucx://127.0.0.1:1", "--json", "-1"},
      {"stat"},
      {"cat", "ucx://127.0.0.1:1/x", "--timeout", "soon"},
      {"cat", "ucx://127.0.0.1:1/x", "--timeout", "0"},
      {"cat", "ucx://127.0.0.1:1/x", "--timeout", "-1"},
      {"cat", "ucx://127.0.0.1:1/x", "--timeout", "nan"},
      {"--timeout", "1e300", "ls", "ucx://127.0.0.1:1"},
      {"serve", "--bind"},
      {"serve", "--timeout", "5"},
      {"serve", "--limit", "connections"},
      {"serve", "--limit", "connections=many"},
      {"serve", "--limit", "user.connections=1"},
      {"serve", "--limit", "identity.files=1"},
      {"--timeout", "5", "serve"},
  };
  for (const std::vector<std::string>& arguments : wrong) {
    const command_result result = run_tool(arguments);
    expect_failure(result, 2, "");
    EXPECT_EQ(result.out, "");
  }
}

TEST(Usage, IsToldOfMalformedUrls) {
  for (const std::string wrong :
       {"127.0.0.1:1/x", "ucx:/127.0.0.1:1/x", "ucx://127.0.0.1/x", "ucx://127.0.0.1:/x",
        "ucx://127.0.0.1:65536/x", "ucx://:1/x", "ucx://[::1/x", "ucx://127.0.0.1:1/%zz",
        "ucx://127.0.0.1:1/%ff", "http://127.0.0.1:1/x", "/etc/hosts"}) {
    for (const std::string verb : {"cat", "stat", "ls", "info", "bench", "put", "rm"}) {
      expect_failure(run_tool({verb, wrong}), 2, wrong);
    }
  }
}

TEST(Usage, IsToldOfAUrlThatLacksAName) {
  for (const std::string verb : {"cat", "stat", "bench", "put", "rm", "hash"}) {
    expect_failure(run_tool({verb, "ucx://127.0.0.1:1"}), 2, "ucx://127.0.0.1:1");
    expect_failure(run_tool({verb, "ucx://127.0.0.1:1/"}), 2, "ucx://127.0.0.1:1");
  }
}

TEST(Usage, IsHelped) {
  const command_result general = run_tool({"--help"});
  EXPECT_EQ(general.code, 0);
  for (const std::string words :
       {"serve",      "ls",   "cat",       "cp",        "put",         "mkdir", "mv",
        "rm",         "stat", "hash",      "pipe",      "call",        "info",  "bench",
        "completion", "man",  "--timeout", "Examples:", "Exit codes:", "130"}) {
    EXPECT_THAT(general.out, HasSubstr(words));
  }
  for (const std::string verb : {"serve", "ls", "cat", "cp", "put", "mkdir", "mv", "rm", "stat",
                                 "hash", "call", "info", "bench", "completion", "man"}) {
    const command_result help = run_tool({verb, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("Example:\n  ucxio " + verb));
    if (verb != "serve" && verb != "completion" && verb != "man") {
      EXPECT_THAT(help.out, HasSubstr("--timeout SECONDS"));
    }
  }
  expect_failure(run_tool({"--help"}, command::output::full_disk), 9, "No space left");
}

TEST(Usage, IsHelpedWithCommandsOfCommands) {
  const command_result both = run_tool({"pipe", "--help"});
  EXPECT_EQ(both.code, 0);
  for (const std::string words : {"send\n", "receive\n", "--readers N", "--writers N", "--bind"}) {
    EXPECT_THAT(both.out, HasSubstr(words));
  }
  for (const std::string end : {"send", "receive"}) {
    const command_result help = run_tool({"pipe", end, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_THAT(help.out, HasSubstr("Example:\n  ucxio pipe " + end));
    EXPECT_THAT(help.out, HasSubstr("--timeout SECONDS"));
    EXPECT_THAT(help.out, HasSubstr("how long to wait for the other end to come (default: 300)"));
    EXPECT_THAT(help.out, Not(HasSubstr("5 and 30")));
    expect_failure(run_tool({"pipe", end, "--wrong"}), 2, "see `ucxio pipe " + end + " --help`");
  }
  expect_failure(run_tool({"pipe"}), 2, "see `ucxio pipe --help`");
}

TEST(Usage, IsToldWhatEveryExitCodeMeans) {
  const std::string help = run_tool({"--help"}).out;
  for (const std::string words : {"(--verify)", "compressed piece", "  12   no space"}) {
    EXPECT_THAT(help, HasSubstr(words));
  }
}

TEST(Usage, IsToldTheVersion) {
  const command_result result = run_tool({"--version"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, StartsWith("ucxio " + to_string(version())));
}

TEST(Connecting, IsRefusedWhereNobodyListens) {
  for (const std::string verb : {"cat", "stat", "ls", "info", "bench"}) {
    expect_failure(run_tool({verb, "--timeout", "5", "ucx://127.0.0.1:1/x"}), 4,
                   "ucx://127.0.0.1:1");
  }
}

TEST(Connecting, FailsWhereThereIsNoSuchHost) {
  expect_failure(run_tool({"ls", "ucx://no-such-host.invalid:1"}), 4, "no-such-host.invalid");
}

TEST(Connecting, FailsWhereThereIsNoRoute) {
  const own_namespace nothing_but_itself({"--net"});
  if (!nothing_but_itself.why_not().empty()) GTEST_SKIP() << nothing_but_itself.why_not();
  const command_result result =
      command(own_namespace::program,
              nothing_but_itself.line({tool_program(), "ls", "ucx://10.0.0.1:7471/"}))
          .finish();
  expect_failure(result, 4, "ucx://10.0.0.1:7471");
  EXPECT_THAT(result.err, HasSubstr("no route to the peer"));
}

TEST(Connecting, TimesOutWhereNobodyAnswers) {
  // The system accepts connections for it; it never looks at them.
  const int silent = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const socket_address any("127.0.0.1:0");
  ASSERT_EQ(::bind(silent, any.native(), any.native_size()), 0);
  ASSERT_EQ(::listen(silent, 4), 0);
  ::sockaddr_storage bound = {};
  ::socklen_t size = sizeof bound;
  ASSERT_EQ(::getsockname(silent, reinterpret_cast<::sockaddr*>(&bound), &size), 0);
  const socket_address at =
      socket_address::from_native(reinterpret_cast<::sockaddr*>(&bound), size);
  expect_failure(run_tool({"--timeout", "0.5", "ls", "ucx://" + to_string(at)}), 6, to_string(at));
  ::close(silent);
}

TEST(Connecting, TimesOutWhereTheServerIsStopped) {
  tool_server server({});
  server.process().stop();
  expect_failure(run_tool({"ls", "--timeout", "0.5", server.url()}), 6, server.url());
  server.process().resume();
  EXPECT_EQ(run_tool({"ls", server.url()}).code, 0);
}

}  // namespace
}  // namespace ucx::test
