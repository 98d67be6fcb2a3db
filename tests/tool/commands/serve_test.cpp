#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/process/own_namespace.hpp"
#include "support/tool/tool.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using output = command::output;

/// Waits until the process writes to its standard output and cannot. Returns false where the system
/// does not tell.
bool waits_for_stdout(pid_t process) {
  const std::string writing = std::to_string(SYS_write) + " 0x1 ";
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < until) {
    if (content_of("/proc/" + std::to_string(process) + "/syscall").starts_with(writing))
      return true;
    std::this_thread::yield();
  }
  return false;
}

/// Returns the first line of the standard output, without its end.
std::string first_line(command& of) {
  std::string line;
  for (std::string next = of.read(1); !next.empty() && next != "\n"; next = of.read(1)) {
    line += next;
  }
  return line;
}

/// Runs `ucxio serve`, which is expected to end by itself.
command_result serve(std::vector<std::string> arguments,
                     command::output where = command::output::kept) {
  arguments.insert(arguments.begin(), "serve");
  return run_tool(arguments, where);
}

TEST(Serve, SaysItsUrlFirstWhenEverythingCanBeRead) {
  const temporary_directory folder;
  const std::string path = folder.make("notes.txt", "one\ntwo\n");
  tool_server server({"first=" + path, path});
  EXPECT_THAT(server.url(), StartsWith("ucxs://127.0.0.1:"));
  EXPECT_EQ(run_tool({"cat", server.url("first")}).out, "one\ntwo\n");
  EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "one\ntwo\n");
}

TEST(Serve, ServesBySeveralWorkers) {
  const temporary_directory folder;
  const std::string path = folder.make("notes.txt", "one\ntwo\n");
  std::filesystem::create_directory(folder / "store");
  const std::string store = "s=" + (folder / "store").string();
  const tool_server server({path, "--workers", "3", "--writable", "--store", store});
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "one\ntwo\n");
    const command_result copied = run_tool({"cp", path, server.url("s/copy" + std::to_string(i))});
    EXPECT_EQ(copied.code, 0) << copied.err;
    EXPECT_EQ(content_of(folder / ("store/copy" + std::to_string(i))), "one\ntwo\n");
  }
  for (const std::string wrong : {"0", "65", "-1", "x"}) {
    expect_failure(serve({"--workers=" + wrong}), 2, "--workers");
  }
}

/// What comes behind the value of an option that may be given several times is no other value.
TEST(Serve, TakesPathsBehindItsOptions) {
  const temporary_directory folder;
  std::filesystem::create_directory(folder / "store");
  const std::string path = folder.make("notes.txt", "one\ntwo\n");
  const tool_server server(
      {"--store", "s=" + (folder / "store").string(), "--memory-store", "m=1M", path});
  EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "one\ntwo\n");
}

/// RDMA hardware that is there and goes unused is told of in the same way.
TEST(Serve, SaysWhichDevicesItDoesNotUse) {
  const temporary_directory folder;
  command server("/usr/bin/env",
                 {"-u", "UCXIO_LOG", "UCX_NET_DEVICES=nothere0", tool_program(), "serve", "--quiet",
                  "--ucx", folder.make("x", "1")},
                 output::pipe);
  EXPECT_THAT(first_line(server), StartsWith("ucx://127.0.0.1:"));
  server.send_signal(SIGTERM);
  const command_result result = server.finish();
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("ucxio: not used: UCX_NET_DEVICES=nothere0: limited to lo: "));
}

class ServeSignal : public ::testing::TestWithParam<int> {};

TEST_P(ServeSignal, EndsWithSuccess) {
  const temporary_directory folder;
  tool_server server({folder.make("x", "1")});
  server.process().send_signal(GetParam());
  const std::optional<int> status = server.process().wait(std::chrono::seconds(30));
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << *status;
  // And it is really gone.
  expect_failure(run_tool({"ls", server.url()}), 4, server.url());
}

INSTANTIATE_TEST_SUITE_P(Each, ServeSignal, ::testing::Values(SIGINT, SIGTERM, SIGHUP));

/// Returns whether the child ends within `limit`, and leaves it to be waited for.
bool ended_within(pid_t child, std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < until) {
    ::siginfo_t found = {};
    if (::waitid(P_PID, static_cast<id_t>(child), &found, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        found.si_pid == child) {
      return true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

/// Though UCX takes the signal for itself when it is loaded.
TEST(Serve, OutlivesItsTerminalUnderNohup) {
  const std::string nohup = "/usr/bin/nohup";
  if (!std::filesystem::exists(nohup)) GTEST_SKIP() << "there is no " << nohup;
  const temporary_directory folder;
  command server(nohup, {tool_program(), "serve", "--quiet", folder.make("x", "1")}, output::pipe);
  const std::string url = first_line(server);
  server.send_signal(SIGHUP);
  // One that takes leave may still serve, for a second.
  EXPECT_FALSE(ended_within(server.pid(), std::chrono::milliseconds(1500)));
  EXPECT_EQ(run_tool({"cat", url + "/x"}).out, "1");
  server.send_signal(SIGTERM);
  const command_result result = server.finish();
  EXPECT_TRUE(result.in_time);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.code, 0) << result.err;
}

/// What is in the environment of a process that runs `ucxio`, by `env` with `settings`.
std::string environment_with(std::vector<std::string> settings) {
  settings.insert(settings.end(), {tool_program(), "serve", "--quiet"});
  command server("/usr/bin/env", settings, output::pipe);
  EXPECT_THAT(first_line(server), StartsWith("ucxs://"));
  std::string found = content_of("/proc/" + std::to_string(server.pid()) + "/environ");
  std::replace(found.begin(), found.end(), '\0', '\n');
  return found;
}

TEST(Serve, HasUcxWaitForNoThreadsWhenItStarts) {
  const std::string wait = "UCX_MEM_BISTRO_GRACE_DURATION";
  const std::string usual = environment_with({"-u", wait});
  if (ucx_version() >= version_number{1, 21, 0}) {
    EXPECT_THAT(usual, HasSubstr('\n' + wait + "=1ms\n"));
  } else {
    EXPECT_THAT(usual, Not(HasSubstr(wait)));
  }
  EXPECT_THAT(environment_with({wait + "=2ms"}), HasSubstr('\n' + wait + "=2ms\n"));
}

/// Then the program of the process is the loader, and its arguments are others.
TEST(Serve, StartsByTheLoaderToo) {
  const std::string loader = "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(loader)) GTEST_SKIP() << "there is no " << loader;
  const command_result told = command(loader, {tool_program(), "--version"}).finish();
  EXPECT_THAT(told.out, StartsWith("ucxio "));
}

TEST_P(ServeSignal, EndsItWhileItStarts) {
  command server("/usr/bin/env",
                 {std::string("LD_PRELOAD=") + STUCK_LISTEN, tool_program(), "serve", "--quiet"},
                 output::pipe);
  ASSERT_EQ(server.read(1), "!");
  server.send_signal(GetParam());
  const command_result result = server.finish();
  EXPECT_TRUE(result.in_time);
  EXPECT_EQ(result.signal, GetParam());
}

TEST_P(ServeSignal, EndsItWhileNobodyTakesItsUrl) {
  command server(tool_program(), {"serve", "--quiet"}, output::stuck);
  if (!waits_for_stdout(server.pid())) GTEST_SKIP() << "it cannot be seen what it waits for";
  server.send_signal(GetParam());
  const command_result result = server.finish();
  EXPECT_TRUE(result.in_time);
  EXPECT_EQ(result.signal, GetParam());
}

class ServeErrors : public ::testing::TestWithParam<output> {};

TEST_P(ServeErrors, ThatNobodyReadsDoNotMatter) {
  const temporary_directory folder;
  command server(tool_program(), {"serve", folder.make("x", "12345").string()}, output::pipe,
                 GetParam());
  const std::string url = first_line(server);
  ASSERT_FALSE(url.empty());
  EXPECT_EQ(run_tool({"cat", url + "/x"}).out, "12345");
  server.send_signal(SIGTERM);
  const command_result result = server.finish();
  EXPECT_TRUE(result.in_time);
  EXPECT_EQ(result.code, 0);
}

INSTANTIATE_TEST_SUITE_P(Each, ServeErrors,
                         ::testing::Values(output::closed, output::full_disk, output::broken,
                                           output::stuck));

TEST(Serve, EndsWhileItsReaderIsStopped) {
  const temporary_directory folder;
  const std::string path = folder.make("large", "");
  std::filesystem::resize_file(path, std::uint64_t{1} << 30U);
  tool_server server({"large=" + path});
  command reader(tool_program(), {"cat", server.url("large")}, command::output::pipe);
  EXPECT_FALSE(reader.read(1).empty());
  reader.send_signal(SIGSTOP);
  server.process().send_signal(SIGTERM);
  const std::optional<int> status = server.process().wait(std::chrono::seconds(30));
  ASSERT_TRUE(status.has_value());
  EXPECT_TRUE(WIFEXITED(*status) && WEXITSTATUS(*status) == 0) << *status;
}

TEST(Serve, SaysWhereItHasNoIpv6) {
  const own_namespace without_addresses({"--net"});
  if (!without_addresses.why_not().empty()) GTEST_SKIP() << without_addresses.why_not();
  const temporary_directory folder;
  const command_result result =
      command(own_namespace::program,
              without_addresses.line({tool_program(), "serve", "--ucx", "--insecure", "--bind",
                                      "[::]:0", folder.make("there", "1").string()}))
          .finish();
  expect_failure(result, 1, "serving on [::]:0: this machine has no address of IPv6");
}

TEST(Serve, RefusesAllWhenOnePathIsWrong) {
  const temporary_directory folder;
  const command_result result =
      serve({folder.make("there", "1"), "lost=" + (folder / "not there").string()});
  expect_failure(result, 3, (folder / "not there").string());
  EXPECT_EQ(result.out, "");
}

TEST(Serve, KeepsWhatIsNoUtf8FromTheTerminal) {
  expect_failure(serve({"x=/\x9b/\xc3(\xe2\x82\xac\xc2\x9b"}), 3,
                 "\"/\\x9b/\\xc3(\xe2\x82\xac\\x9b\"");
}

TEST(Serve, RefusesWhatIsNoFile) {
  const temporary_directory folder;
  expect_failure(serve({"folder=" + (folder / "").string()}), 1, "not a regular file");
}

TEST(Serve, RefusesAFileThatMayNotBeRead) {
  // Not even the superuser may read this one.
  const std::filesystem::path closed = "/proc/sys/net/ipv4/route/flush";
  if (!std::filesystem::exists(closed)) GTEST_SKIP() << closed << " is not here";
  expect_failure(serve({closed}), 5, closed.string());
}

TEST(Serve, RefusesTwoFilesOfOneName) {
  const temporary_directory folder;
  const std::string path = folder.make("x", "1");
  expect_failure(serve({"same=" + path, "same=" + path}), 2, "\"same\"");
}

TEST(Serve, RefusesANameThatCanNotBeOne) {
  const temporary_directory folder;
  const std::string path = folder.make("x", "1");
  expect_failure(serve({"=" + path}), 2, "empty");
  std::string too_long(1025, 'n');
  too_long.append("=").append(path);
  expect_failure(serve({too_long}), 2, "1024");
  expect_failure(serve({"\xff=" + path}), 2, "UTF-8");
}

TEST(Serve, RefusesAnAddressThatOthersCanReach) {
  expect_failure(serve({"--ucx", "--bind", "0.0.0.0:0"}), 5, "--insecure");
}

TEST(Serve, RefusesAnAddressThatIsNone) {
  for (const std::string wrong :
       {"nonsense", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", ":1", "127.0.0.1:65536"}) {
    expect_failure(serve({"--bind", wrong}), 2, wrong);
  }
}

TEST(Serve, RefusesAPortThatIsTaken) {
  const tool_server first({});
  const std::string address = first.url().substr(std::string("ucxs://").size());
  expect_failure(serve({"--bind", address}), 4, address);
}

TEST(Serve, RefusesToServeWhenNobodyLearnsItsUrl) {
  expect_failure(serve({}, command::output::full_disk), 9, "No space left on device");
  expect_failure(serve({}, command::output::closed), 9, "ucxs://127.0.0.1:");
}

}  // namespace
}  // namespace ucx::test
