// What commands show on the standard error stream while they work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/progress_objects.hpp"
#include "support/tool/pseudo_terminal.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Progress : public ::testing::Test {
 protected:
  Progress() { folder_.make("x", std::string(3 << 20U, 'x')); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Expects what the last object says of the end.
  static void expect_end(const std::string& errors, const std::string& outcome, int code) {
    const nlohmann::ordered_json last = last_progress_in(errors);
    ASSERT_TRUE(last.is_object()) << errors;
    EXPECT_EQ(last["done"], outcome == "done") << errors;
    EXPECT_EQ(last["outcome"], outcome) << errors;
    EXPECT_EQ(last["exit_code"], code) << errors;
  }
  /// Begins a command that says how far it is, and returns when it has said so once.
  static std::unique_ptr<command> begin(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--progress", "json"});
    auto running = std::make_unique<command>(tool_program(), arguments, command::output::pipe);
    EXPECT_TRUE(
        soon([&] { return running->errors().find("\"done\":false") != std::string::npos; }));
    return running;
  }

  const temporary_directory folder_;
};

TEST_F(Progress, IsALineOnATerminal) {
  const terminal_result result =
      run_on_terminal(tool_program(), {"cp", "--bwlimit", "4M", path("x"), path("y")}, 120);
  EXPECT_EQ(result.code, 0) << result.shown;
  EXPECT_THAT(result.shown, HasSubstr("\r"));
  EXPECT_THAT(result.shown, ContainsRegex("1\\.[0-9] MiB of 3\\.0 MiB  +[0-9]+% \\[#+ +\\]"));
  EXPECT_THAT(result.shown, ContainsRegex("MiB/s \\(avg [0-9.]+ MiB/s\\)  ETA 0:0[0-9]"));
  EXPECT_THAT(result.shown, HasSubstr("3.0 MiB of 3.0 MiB  100% [####"));
  EXPECT_TRUE(result.shown.ends_with("\n")) << result.shown;
}

TEST_F(Progress, FitsIntoANarrowTerminal) {
  const terminal_result result = run_on_terminal(tool_program(), {"cp", path("x"), path("y")}, 30);
  EXPECT_EQ(result.code, 0) << result.shown;
  const std::size_t end = result.shown.rfind("\x1b[K");
  ASSERT_NE(end, std::string::npos);
  EXPECT_LT(end - result.shown.rfind('\r', end), 31U) << result.shown;
}

TEST_F(Progress, IsNotThereWithoutATerminalOrWhereNobodyWantsIt) {
  EXPECT_EQ(run_tool({"cp", path("x"), path("y")}).err, "");
  const terminal_result result =
      run_on_terminal(tool_program(), {"cp", "--progress", "none", path("x"), path("y")}, 80);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.shown, "");
}

TEST_F(Progress, TellsObjectsToPrograms) {
  const command_result result =
      run_tool({"cp", "--progress", "json", "--bwlimit", "2M", path("x"), path("y")});
  EXPECT_EQ(result.code, 0) << result.err;
  const std::vector<nlohmann::ordered_json> all = progress_in(result.err);
  ASSERT_GE(all.size(), 2U);
  std::vector<std::string> members;
  for (const auto& [name, value] : all.back().items()) members.push_back(name);
  EXPECT_THAT(members,
              ::testing::ElementsAre("bytes", "total_bytes", "files", "total_files", "seconds",
                                     "bytes_per_second", "average_bytes_per_second", "seconds_left",
                                     "hashed_bytes", "done", "outcome", "exit_code"));
  EXPECT_EQ(all.front()["done"], false);
  EXPECT_TRUE(all.front()["outcome"].is_null());
  EXPECT_TRUE(all.front()["exit_code"].is_null());
  EXPECT_TRUE(all.front()["seconds_left"].is_number());
  expect_end(result.err, "done", 0);
  EXPECT_EQ(all.back()["bytes"], 3 << 20U);
  EXPECT_EQ(all.back()["total_bytes"], 3 << 20U);
  EXPECT_EQ(all.back()["files"], 1);
}

TEST_F(Progress, TellsThatItFailed) {
  const command_result full = run_tool({"cp", "--progress", "json", path("x"), "/dev/full"});
  EXPECT_EQ(full.code, 12) << full.err;
  expect_end(full.err, "failed", 12);
  std::filesystem::create_directory(path("into"));
  const command_result partial =
      run_tool({"cp", "--progress", "json", path("x"), path("missing"), path("into/")});
  EXPECT_EQ(partial.code, 11) << partial.err;
  expect_end(partial.err, "partial", 11);
  const command_result wrong =
      run_tool({"cp", "--progress", "json", "--direct", path("x"), path("y")});
  EXPECT_EQ(wrong.code, 2) << wrong.err;
  expect_end(wrong.err, "failed", 2);
}

TEST_F(Progress, TellsThatItWasInterrupted) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const auto running = begin({"cp", "--bwlimit", "500K", path("x"), path("y")});
    running->send_signal(signal);
    const command_result result = running->finish();
    EXPECT_EQ(result.signal, signal);
    expect_end(result.err, "interrupted", 128 + signal);
    EXPECT_LT(last_progress_in(result.err)["bytes"], 3 << 20U);
  }
}

/// What has nothing to tidy up ends at once, and says so all the same.
TEST_F(Progress, TellsOfEveryCommandThatItWasInterrupted) {
  const tool_server server({"--pipes", "--store", path(""), "--writable"});
  const std::vector<std::vector<std::string>> commands{{"cat", "--follow", server.url("x")},
                                                       {"pipe", "receive", server.url("p")}};
  for (const std::vector<std::string>& arguments : commands) {
    const auto running = begin(arguments);
    running->send_signal(SIGTERM);
    const command_result result = running->finish();
    EXPECT_EQ(result.signal, SIGTERM);
    expect_end(result.err, "interrupted", 128 + SIGTERM);
  }
}

TEST_F(Progress, IsToldOfWhatIsReadAndHashed) {
  const tool_server server({"x=" + path("x")});
  const std::string url = server.url("x");
  const command_result read = run_tool({"cat", "--progress", "json", "--offset", "1M", url, url});
  EXPECT_EQ(read.out.size(), 4U << 20U);
  expect_end(read.err, "done", 0);
  const auto of_reading = last_progress_in(read.err);
  EXPECT_EQ(of_reading["bytes"], 4 << 20U);
  EXPECT_EQ(of_reading["total_bytes"], 4 << 20U);
  EXPECT_EQ(of_reading["total_files"], 2);
  expect_end(run_tool({"cat", "--progress", "json", url}, command::output::full_disk).err, "failed",
             9);
  const command_result hashed = run_tool({"hash", "--progress", "json", path("x"), url});
  expect_end(hashed.err, "done", 0);
  EXPECT_EQ(last_progress_in(hashed.err)["bytes"], 6 << 20U);
  expect_end(run_tool({"hash", "--progress", "json", path("x"), path("missing")}).err, "partial",
             11);
}

TEST_F(Progress, IsToldWhileHashesAreCompared) {
  const command_result verified =
      run_tool({"cp", "--verify", "--progress", "json", path("x"), path("y")});
  EXPECT_EQ(last_progress_in(verified.err)["hashed_bytes"], 3 << 20U) << verified.err;
  const command_result resumed =
      run_tool({"cp", "--resume", "--progress", "json", path("x"), path("y")});
  EXPECT_EQ(last_progress_in(resumed.err)["hashed_bytes"], 3 << 20U) << resumed.err;
  const terminal_result shown =
      run_on_terminal(tool_program(), {"cp", "--verify", path("x"), path("y")}, 120);
  EXPECT_THAT(shown.shown, HasSubstr("  hashed 3.0 MiB"));
}

/// Runs a line of a shell in which $0 is the program and $1 a file, on a terminal.
std::string shown_of(const std::string& line, const std::string& file) {
  const terminal_result result =
      run_on_terminal("/bin/bash", {"-c", line, tool_program(), file}, 120);
  EXPECT_EQ(result.code, 0) << result.shown;
  return result.shown;
}

TEST_F(Progress, OfReadingIsShownWhereThatTearsNothing) {
  const tool_server server({"x=" + path("x")});
  EXPECT_THAT(shown_of("\"$0\" cat \"$1\" > /dev/null", server.url("x")),
              HasSubstr("3.0 MiB of 3.0 MiB  100% [####"));
  EXPECT_EQ(shown_of("\"$0\" cat \"$1\" | cat > /dev/null", server.url("x")), "");
  EXPECT_THAT(shown_of("\"$0\" hash \"$1\" > /dev/null", path("x")), HasSubstr("3.0 MiB"));
}

TEST_F(Progress, OfWritingIsShownOnATerminal) {
  const temporary_directory store;
  const tool_server server({"--store", (store / "").string(), "--writable"});
  const std::string file = path("x");
  // Nobody knows how long the input is.
  EXPECT_THAT(shown_of("\"$0\" put \"$1\" < " + file, server.url("put")), HasSubstr("3.0 MiB  "));
  EXPECT_EQ(std::filesystem::file_size(store / "put"), 3U << 20U);
  std::filesystem::create_directory(path("tree"));
  for (const char* name : {"tree/a", "tree/b"}) folder_.make(name, std::string(1 << 20U, 'x'));
  EXPECT_THAT(shown_of("\"$0\" cp -r " + path("tree") + " \"$1\"", server.url("copy")),
              HasSubstr("2.0 MiB of 2.0 MiB  2 of 2 files  100% [####"));
}

TEST_F(Progress, OfAPipeIsShownUnlessItsDataIsOnTheTerminal) {
  const tool_server server({"--pipes"});
  command receives(tool_program(), {"pipe", "receive", server.url("p")});
  EXPECT_THAT(shown_of("\"$0\" pipe send \"$1\" < " + path("x"), server.url("p")),
              HasSubstr("3.0 MiB  "));
  EXPECT_EQ(receives.finish().out.size(), 3U << 20U);
  command sends("/bin/sh",
                {"-c", "printf hello | \"$0\" pipe send \"$1\"", tool_program(), server.url("q")});
  EXPECT_EQ(shown_of("\"$0\" pipe receive \"$1\" >&2", server.url("q")), "hello");
  EXPECT_EQ(sends.finish().code, 0);
}

}  // namespace
}  // namespace ucx::test
