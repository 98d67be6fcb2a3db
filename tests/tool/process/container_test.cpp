// What the tool does where containers leave things out: system calls, /proc, the usual end by
// signals, long files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/child_process.hpp"
#include "support/process/command.hpp"
#include "support/process/own_namespace.hpp"
#include "support/process/process_memory.hpp"
#include "support/tool/tool.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;

constexpr std::chrono::seconds limit{30};

/// Runs a line of the shell, in which $UCXIO is the tool.
command_result shell(const std::string& line) {
  return command("/bin/sh", {"-c", "UCXIO=" + tool_program() + "; " + line}).finish();
}

/// A server of a writable store that may not make some system calls.
class FilteredServer : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const command_result tried = command(launcher(), {GetParam(), "/bin/true"}).finish();
    if (tried.code == 77) GTEST_SKIP() << tried.err;
    folder_.make("small", "small");
    folder_.make("large", large_);
    process_.emplace(launcher(),
                     std::vector<std::string>{GetParam(), tool_program(), "serve", "--quiet",
                                              "--store", (folder_ / "").string(), "--writable",
                                              "file=" + (folder_ / "large").string()});
    url_ = process_->read_line(limit).value_or("it did not start");
  }
  static std::string launcher() { return sibling_program("ucxio-denied-calls"); }

  const std::string large_ = pattern_text(std::size_t{3} << 20U);
  const temporary_directory folder_;
  const temporary_directory here_;
  std::optional<child_process> process_;
  std::string url_;
};

TEST_P(FilteredServer, IsCopiedFromAndTo) {
  for (const std::string name : {"small", "large", "file"}) {
    const command_result copied =
        run_tool({"cp", "--verify", url_ + '/' + name, (here_ / name).string()});
    EXPECT_EQ(copied.code, 0) << copied.err;
    EXPECT_TRUE(content_of(here_ / name) == (name == "small" ? "small" : large_)) << name;
    const command_result hashed = run_tool({"hash", url_ + '/' + name});
    EXPECT_EQ(hashed.code, 0) << hashed.err;
  }
  for (const std::string name : {"small", "large"}) {
    const std::string to = url_ + "/new/" + name;
    const command_result stored = run_tool({"cp", (folder_ / name).string(), to});
    EXPECT_EQ(stored.code, 0) << stored.err;
    const command_result put =
        shell("exec $UCXIO put " + url_ + "/put/" + name + " <" + (folder_ / name).string());
    EXPECT_EQ(put.code, 0) << put.err;
    const command_result again = run_tool({"cp", (folder_ / name).string(), to});
    EXPECT_EQ(again.code, 0) << again.err;
  }
  const command_result listed = run_tool({"ls", "-1", url_ + "/put"});
  EXPECT_EQ(listed.out, "put/large\nput/small\n") << listed.err;
  EXPECT_TRUE(content_of(folder_ / "new/large") == large_);
  EXPECT_EQ(content_of(folder_ / "put/small"), "small");
}

TEST_P(FilteredServer, TellsAChangedFile) {
  command copying(tool_program(),
                  {"cp", "--bwlimit", "1M", url_ + "/large", (here_ / "large").string()});
  ASSERT_TRUE(soon([&] { return std::filesystem::exists(here_ / ".large.ucxio-part"); }));
  std::ofstream(folder_ / "large", std::ios::app) << "more";
  const command_result result = copying.finish();
  EXPECT_EQ(result.code, 8) << result.err;
}

INSTANTIATE_TEST_SUITE_P(Denied, FilteredServer,
                         ::testing::Values("statx=EPERM", "statx=ENOSYS", "renameat2=EPERM",
                                           "renameat2=ENOSYS", "faccessat2=EPERM"),
                         [](const auto& each) {
                           std::string name = each.param;
                           name.replace(name.find('='), 1, "With");
                           return name;
                         });

/// Returns the process that is the first one in its namespace, a child of `launcher`.
pid_t first_process(pid_t launcher) {
  const std::string at = std::to_string(launcher);
  pid_t found = 0;
  std::ifstream("/proc/" + at + "/task/" + at + "/children") >> found;
  return found;
}

std::string command_name_of(pid_t process) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(process) + "/comm") >> std::ws, name);
  return name;
}

class FirstProcess : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!where_.why_not().empty()) GTEST_SKIP() << where_.why_not();
  }
  /// Expects that the tool, doing that, is ended by the signal once `is_at_work`.
  void expect_end(const std::vector<std::string>& words, const std::function<bool()>& is_at_work) {
    std::vector<std::string> line{tool_program()};
    line.insert(line.end(), words.begin(), words.end());
    child_process launcher(own_namespace::program, where_.line(line));
    ASSERT_TRUE(soon([&] { return command_name_of(first_process(launcher.pid())) == "ucxio"; }));
    ASSERT_TRUE(soon(is_at_work)) << words.front();
    // While it is loaded it has no handler yet.
    std::optional<int> status;
    const bool ended = soon([&] {
      const pid_t first = first_process(launcher.pid());
      if (first > 0) ::kill(first, GetParam());  // 0 would mean this process
      return (status = launcher.wait(std::chrono::milliseconds(100))).has_value();
    });
    ASSERT_TRUE(ended) << words.front() << " goes on";
    EXPECT_EQ(WEXITSTATUS(*status), 128 + GetParam()) << words.front();
  }

  const own_namespace where_{{"--pid", "--fork", "--kill-child"}};
};

TEST_P(FirstProcess, EndsByASignal) {
  const temporary_directory folder;
  const std::string log = folder.make("log", "line\n").string();
  server_options options;
  ucx_server owner(options);
  const publication store = owner.publish_store(folder / "", {.writable = true});
  const auto spool = folder / ".ucxio-unfinished";
  const auto has_client = [&] { return owner.statistics().clients > 0; };
  expect_end({"cat", "-f", owner.url() + "/log"}, has_client);
  ASSERT_TRUE(soon([&] { return owner.statistics().clients == 0; }));
  expect_end({"put", owner.url() + "/new"}, [&] { return !std::filesystem::is_empty(spool); });
  expect_end({"pipe", "receive", "--timeout", "100"}, [] { return true; });
}

INSTANTIATE_TEST_SUITE_P(Signals, FirstProcess, ::testing::Values(SIGTERM, SIGINT, SIGHUP),
                         [](const auto& each) { return "Of" + std::to_string(each.param); });

TEST(Cat, KeepsWhatUcxLogsOutOfItsOutput) {
  const temporary_directory folder;
  folder.make("x", "content\n");
  const tool_server owner({"--ucx", "--store", (folder / "").string()});
  const command_result result = shell("UCX_LOG_LEVEL=debug exec $UCXIO cat " + owner.url("x"));
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.out, "content\n");
  EXPECT_THAT(result.err, HasSubstr("UCX  DEBUG"));
  const std::string log = (folder / "log").string();
  const command_result elsewhere =
      shell("UCX_LOG_FILE=" + log + " UCX_LOG_LEVEL=debug exec $UCXIO cat " + owner.url("x"));
  EXPECT_EQ(elsewhere.out, "content\n");
  EXPECT_EQ(elsewhere.err, "");
  EXPECT_THAT(content_of(log), HasSubstr("UCX  DEBUG"));
}

TEST(Serve, SaysItsUrlFirstWhateverUcxComplainsOf) {
  const own_namespace where({"--mount"});
  if (!where.why_not().empty()) GTEST_SKIP() << where.why_not();
  const temporary_directory folder;
  folder.make("x", "content\n");
  // UCX looks for that while it is loaded.
  const std::string line = "mount --bind /dev/null /proc/sys/kernel/random/boot_id && exec " +
                           tool_program() + " serve --ucx --quiet --store " +
                           (folder / "").string();
  child_process serving(own_namespace::program, where.line({"/bin/sh", "-c", line}));
  const std::string url = serving.read_line(limit).value_or("");
  EXPECT_TRUE(url.starts_with("ucx://")) << url;
}

TEST(Version, IsToldWithoutProc) {
  const own_namespace where({"--mount"});
  if (!where.why_not().empty()) GTEST_SKIP() << where.why_not();
  const std::string line = "mount -t tmpfs none /proc && exec " + tool_program() + " --version";
  const command_result told =
      command(own_namespace::program, where.line({"/bin/sh", "-c", line})).finish();
  EXPECT_EQ(told.code, 0);
  EXPECT_TRUE(told.out.starts_with("ucxio ")) << told.out;
}

TEST(Serve, StartsWhereFilesMayNotBeLong) {
  const temporary_directory folder;
  folder.make("x", "content\n");
  const std::string line = "ulimit -f 1024; exec " + tool_program() +
                           " serve --ucx --quiet --store " + (folder / "").string();
  child_process serving("/bin/sh", {"-c", line});
  const std::string url = serving.read_line(limit).value_or("");
  ASSERT_TRUE(url.starts_with("ucx://")) << url;
  EXPECT_EQ(run_tool({"cat", url + "/x"}).out, "content\n");
}

TEST(Connecting, EndsWhereUcxDoesNotReturn) {
  const ucx_server owner;
  const command_result result =
      shell("ulimit -v 4000000; LD_PRELOAD=" STUCK_PROGRESS " exec $UCXIO ls --timeout 0.5 " +
            owner.url());
  expect_failure(result, 6, "address space");
}

/// UCX does not return where it gets no memory for what it sends.
TEST(Connecting, FailsWhereUcxWouldNotReturn) {
  const ucx_server owner;
  for (int kib = 55'000; kib <= 70'000; kib += 1'500) {
    const command_result result =
        shell("ulimit -v " + std::to_string(kib) + "; exec $UCXIO ls --timeout 5 " + owner.url());
    EXPECT_THAT(result.err, ::testing::Not(HasSubstr("connecting does not end"))) << kib;
  }
}

/// With one thread more, or one less.
TEST(Serve, SaysItsUrlWhenNothingMoreIsNeeded) {
  const temporary_directory folder;
  folder.make("x", "content\n");
  for (int kib = 80'000; kib <= 260'000; kib += 15'000) {
    command serving("/bin/sh",
                    {"-c", "ulimit -v " + std::to_string(kib) + "; exec " + tool_program() +
                               " serve --ucx --store " + (folder / "").string()},
                    command::output::pipe);
    const std::string first = serving.read(6);
    if (first.empty()) {
      const command_result failed = serving.finish();
      EXPECT_NE(failed.code, 0);
      EXPECT_THAT(
          failed.err,
          ::testing::Not(::testing::MatchesRegex("ucxio: Resource temporarily unavailable\n")));
      continue;
    }
    EXPECT_EQ(first, "ucx://");
    // What it lists is behind the URL, and by then everything is there.
    EXPECT_TRUE(soon([&] {
      return serving.errors().find("ucxio: elsewhere") != std::string::npos;
    })) << kib;
    serving.send_signal(SIGTERM);
    EXPECT_EQ(serving.finish().code, 0) << kib;
  }
}

/// UCX ends the process where its table of endpoints can not grow.
bool ucx_ended(const command_result& ended) {
  return ended.code != 0 && ended.err.find("  Fatal: failed to put ") != std::string::npos;
}

/// Clients take memory, and some of the process keeps it.
TEST(Serve, NeedsNoThreadMoreToEnd) {
  const temporary_directory folder;
  folder.make("x", "content\n");
  int served = 0;
  for (int kib = 150'000; kib <= 250'000; kib += 10'000) {
    command serving("/bin/sh",
                    {"-c", "ulimit -v " + std::to_string(kib) + "; exec " + tool_program() +
                               " serve --ucx --quiet --store " + (folder / "").string()},
                    command::output::pipe);
    std::string url;
    for (std::string next = serving.read(1); !next.empty() && next != "\n";
         next = serving.read(1)) {
      url += next;
    }
    if (url.empty()) continue;
    const command_result read = run_tool({"cat", "--timeout", "10", url + "/x"});
    if (read.code == 0) ++served;
    serving.send_signal(SIGTERM);
    const command_result ended = serving.finish();
    if (ucx_ended(ended)) continue;
    EXPECT_EQ(ended.code, 0) << kib << ' ' << ended.err;
  }
  EXPECT_TRUE(served > 0 || !memory_is_measurable);
}

}  // namespace
}  // namespace ucx::test
