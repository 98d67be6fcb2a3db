// What the program says of itself to shells, and to `man`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Returns what bash makes of the last of some words.
std::string completed(const std::string& words) {
  const temporary_directory folder;
  const std::string script = folder.make("ucxio", run_tool({"completion", "bash"}).out).string();
  command bash("/bin/bash", {"--norc", "-c",
                             "source \"$0\"; COMP_WORDS=(" + words +
                                 "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _ucxio; "
                                 "echo \"${COMPREPLY[*]}\"",
                             script});
  const command_result result = bash.finish();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
  return result.out;
}

TEST(Completion, KnowsCommandsOptionsAndValuesInBash) {
  EXPECT_EQ(completed("ucxio ser"), "serve\n");
  EXPECT_THAT(completed("ucxio ''"), HasSubstr("cp"));
  EXPECT_EQ(completed("ucxio cp --res"), "--resume --restart-changed\n");
  EXPECT_EQ(completed("ucxio cp --verify x --bw"), "--bwlimit\n");
  EXPECT_EQ(completed("ucxio cp --progress j"), "json\n");
  EXPECT_EQ(completed("ucxio cp --hash x"), "xxh3\n");
  EXPECT_THAT(completed("ucxio serve --w"), HasSubstr("--writable"));
  EXPECT_EQ(completed("ucxio cp fil"), "\n") << "paths are bash's";
  EXPECT_EQ(completed("ucxio pipe ''"), "send receive\n");
  EXPECT_EQ(completed("ucxio pipe r"), "receive\n");
  EXPECT_EQ(completed("ucxio pipe --h"), "--help\n");
  EXPECT_EQ(completed("ucxio pipe send --r"), "--readers\n");
  EXPECT_EQ(completed("ucxio pipe receive ucx://h:1/x --w"), "--writers --window\n");
  EXPECT_EQ(completed("ucxio pipe send --progress j"), "json\n");
  EXPECT_EQ(completed("ucxio cp pipe send --rea"), "\n") << "these are files";
}

TEST(Completion, TellsEveryCommandToEveryShell) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const command_result result = run_tool({"completion", shell});
    EXPECT_EQ(result.code, 0) << result.err;
    for (const std::string verb :
         {"serve", "ls",    "cat",   "cp",    "put",        "mkdir",   "mv",
          "rm",    "stat",  "hash",  "pipe",  "send",       "receive", "call",
          "info",  "bench", "token", "login", "completion", "man"}) {
      EXPECT_THAT(result.out, HasSubstr(verb)) << shell;
    }
    for (const std::string option : {"resume", "drop-slow", "writers"}) {
      EXPECT_THAT(result.out, HasSubstr(option)) << shell;
    }
  }
  expect_failure(run_tool({"completion", "tcsh"}), 2, "tcsh");
}

/// Looks whether a shell that is here takes what is meant for it.
void expect_understood(const std::string& shell) {
  const temporary_directory folder;
  const std::string script = folder.make("script", run_tool({"completion", shell}).out).string();
  const std::filesystem::path program = "/usr/bin/" + shell;
  if (!std::filesystem::exists(program)) GTEST_SKIP() << "there is no " << shell << " here";
  EXPECT_EQ(command(program, {"-n", script}).finish().err, "");
}

TEST(Completion, IsUnderstoodByBash) { expect_understood("bash"); }
TEST(Completion, IsUnderstoodByZsh) { expect_understood("zsh"); }
TEST(Completion, IsUnderstoodByFish) { expect_understood("fish"); }

TEST(Manual, TellsEveryCommandOptionAndExitCode) {
  const command_result result = run_tool({"man"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(result.out.starts_with(".TH UCXIO 1")) << result.out.substr(0, 80);
  for (const std::string words :
       {".SS serve\n", ".SS cp\n", ".SS hash\n", ".B ucxio pipe send\n", ".SS pipe receive\n",
        "\\-\\-drop\\-slow", "\\-\\-writers N", "\\-\\-resume", "\\-\\-bwlimit RATE",
        ".B ucxio pipe send\n[URL]\n", ".SH ENVIRONMENT", "UCXIO_TRANSFER_METHOD",
        ".SH EXIT STATUS", "integrity", "ucxio cp \\-r checkpoints"}) {
    EXPECT_THAT(result.out, HasSubstr(words));
  }
  EXPECT_THAT(result.out, Not(HasSubstr("\n.nf\n.fi")));
  EXPECT_THAT(result.out, Not(HasSubstr(".B ucxio pipe\n"))) << "by itself it is no command";
}

}  // namespace
}  // namespace ucx::test
