// `ucxio cp` where others are at the same files, and where something is in the way.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/tool.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class CopyTrouble : public copy_place {
 protected:
  /// Begins to copy slowly, and returns when `partial` has `least` bytes.
  std::unique_ptr<command> begin(std::vector<std::string> arguments, const std::string& partial,
                                 std::size_t least = 2 * mib) {
    arguments.insert(arguments.begin(), "cp");
    auto running = std::make_unique<command>(tool_program(), arguments);
    EXPECT_TRUE(soon([&] {
      std::error_code ec;
      const auto size = std::filesystem::file_size(partial, ec);
      return !ec && size >= least;
    }));
    return running;
  }
  /// Waits until a process has a file open.
  static void wait_for_open(const command& running, const std::string& file) {
    EXPECT_TRUE(soon([&] {
      std::error_code ec;
      const std::string open = "/proc/" + std::to_string(running.pid()) + "/fd";
      for (const auto& each : std::filesystem::directory_iterator(open, ec)) {
        if (std::filesystem::read_symlink(each.path(), ec) == file) return true;
      }
      return false;
    }));
  }
};

TEST_F(CopyTrouble, GivesItsNameToNothingElse) {
  store_.make("x", std::string(8 * mib, 'x'));
  folder_.make("here/other", "other");
  const auto running =
      begin({url("x"), here("y"), "--bwlimit", "4M", "--verify"}, here(".y.ucxio-part"));
  std::filesystem::rename(here("other"), here(".y.ucxio-part"));
  expect_failure(running->finish(), 1, "taken its place");
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre(".y.ucxio-part"));
  EXPECT_EQ(content_of(here(".y.ucxio-part")), "other");
}

TEST_F(CopyTrouble, LeavesOutWhatHasTheNameOfAnUnfinishedCopy) {
  std::filesystem::create_directories(folder_ / "from");
  const std::string x = folder_.make("from/x", "whole");
  const std::string part = folder_.make("from/.x.ucxio-part", "left over");
  const command_result both = run_tool({"cp", x, part, (folder_ / "here").string()});
  EXPECT_EQ(both.code, 11) << both.err;
  EXPECT_THAT(both.err, HasSubstr(".x.ucxio-part: this is the name of an unfinished copy"));
  const command_result tree = run_tool({"cp", "-r", (folder_ / "from").string(), url("tree")});
  EXPECT_EQ(tree.code, 11) << tree.err;
  EXPECT_THAT(tree.err, HasSubstr("1 of what was to be copied was not"));
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre("x"));
  EXPECT_THAT(names_in(store_ / "tree"), UnorderedElementsAre("x"));
  EXPECT_EQ(content_of(here("x")), "whole");
  expect_failure(run_tool({"cp", x, url(".x.ucxio-part")}), 2, "unfinished");
}

TEST_F(CopyTrouble, TakesNoFileOfSomebodyElsesForAnUnfinishedCopy) {
  store_.make("x", "new");
  folder_.make("here/.x.ucxio-part", "precious");
  std::filesystem::create_hard_link(here(".x.ucxio-part"), here("precious"));
  expect_failure(run_tool({"cp", "--resume", url("x"), here("x")}), 5, "another name");
  copy({url("x"), here("x")});
  EXPECT_EQ(content_of(here("x")), "new");
  EXPECT_EQ(content_of(here("precious")), "precious");
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre("x", "precious"));
}

TEST_F(CopyTrouble, ReplacesNothingWhereTheDiskIsFullAtTheEnd) {
  store_.make("x", "new");
  folder_.make("here/x", "old");
  command running("/bin/bash", {"-c", "LD_PRELOAD=\"$1\" exec \"$0\" cp \"$2\" \"$3\"",
                                tool_program(), FULL_AT_CLOSE, url("x"), here("x")});
  expect_failure(running.finish(), 12, "No space left");
  EXPECT_EQ(content_of(here("x")), "old");
}

TEST_F(CopyTrouble, AsksForNoMoreHashesThanAServerComputes) {
  for (int i = 0; i < 80; ++i) {
    const std::string name = "from/f" + std::to_string(i);
    std::filesystem::create_directories(store_ / "from");
    std::filesystem::create_directories(store_ / "to");
    store_.make(name, "");
    std::filesystem::resize_file(there(name), 6 * mib);
    const std::string part = "to/.f" + std::to_string(i) + ".ucxio-part";
    store_.make(part, "");
    std::filesystem::resize_file(there(part), 5 * mib);
  }
  copy({"-r", "--resume", "--verify", "--parallel", "64", url("from/."), url("to")});
  EXPECT_EQ(names_in(store_ / "to").size(), 80U);
  for (const std::string& name : names_in(store_ / "to")) {
    EXPECT_EQ(std::filesystem::file_size(there("to/" + name)), 6 * mib) << name;
  }
}

TEST_F(CopyTrouble, AFileThatSomebodyWritesEndsNothingElse) {
  std::filesystem::create_directories(folder_ / "tree");
  folder_.make("tree/a", "1");
  folder_.make("tree/b", "2");
  folder_.make("here/large", std::string(4 * mib, 'x'));
  const auto writing =
      begin({here("large"), url("a"), "--bwlimit", "1K", "--resume"}, there(".a.ucxio-part"), 1);
  const auto busy = url(".a.ucxio-part");
  expect_failure(run_tool({"cp", "--resume", here("large"), url("a")}), 1, ".a.ucxio-part");
  expect_failure(run_tool({"rm", busy}), 1, ".a.ucxio-part");
  expect_failure(run_tool({"mv", busy, url("z")}), 1, ".a.ucxio-part");
  const command_result tree =
      run_tool({"cp", "-r", "--resume", (folder_ / "tree/.").string(), server_.url()});
  EXPECT_EQ(tree.code, 11) << tree.err;
  EXPECT_THAT(tree.err, HasSubstr("1 of what was to be copied was not"));
  EXPECT_EQ(content_of(there("b")), "2");
  writing->send_signal(SIGINT);
  EXPECT_EQ(writing->finish().signal, SIGINT);
}

TEST_F(CopyTrouble, LeavesNoUnfinishedCopyOnAServerThatIsOfNoUse) {
  folder_.make("here/x", std::string(8 * mib, 'x'));
  const std::string part = there(".y.ucxio-part");
  const auto running = begin({here("x"), url("y"), "--bwlimit", "4M", "--resume"}, part);
  std::ofstream(here("x"), std::ios::app) << "more";
  expect_failure(running->finish(), 8, "changed");
  EXPECT_FALSE(std::filesystem::exists(part));
  EXPECT_FALSE(std::filesystem::exists(there("y")));

  store_.make(".y.ucxio-part", "of an earlier copy");
  copy({here("x"), url("y")});
  EXPECT_FALSE(std::filesystem::exists(part));
}

TEST_F(CopyTrouble, SeesThatASmallSourceWasChanged) {
  const std::string from = folder_.make("here/x", "before");
  ASSERT_EQ(::mkfifo(here("pipe").c_str(), 0600), 0);
  command running(tool_program(), {"cp", from, here("pipe")});
  wait_for_open(running, from);
  std::fstream(from, std::ios::in | std::ios::out) << "behind";
  std::filesystem::last_write_time(from,
                                   std::filesystem::last_write_time(from) + std::chrono::hours(1));
  content_of(here("pipe"));
  expect_failure(running.finish(), 8, "changed");
}

TEST_F(CopyTrouble, TellsAChangedSourceFromADamagedCopy) {
  const std::string from = folder_.make("here/x", std::string(8 * mib, 'x'));
  const auto running =
      begin({from, here("y"), "--bwlimit", "4M", "--verify"}, here(".y.ucxio-part"));
  std::fstream(from, std::ios::in | std::ios::out) << "changed";
  expect_failure(running->finish(), 8, "changed");
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre("x"));
}

TEST_F(CopyTrouble, EndsWhatIsBeingCopiedWhenNothingCanGoWell) {
  const std::string small = folder_.make("full", std::string(mib / 4, 'x'));
  const std::string large = folder_.make("large", std::string(3 * mib, 'x'));
  std::filesystem::create_symlink("/dev/full", here("full"));
  expect_failure(run_tool({"cp", "--bwlimit", "1M", small, large, here("")}), 12, "No space");
  EXPECT_FALSE(std::filesystem::exists(here("large")));
}

TEST_F(CopyTrouble, OneFileThatDoesNotFitEndsNothingElse) {
  std::filesystem::create_directories(folder_ / "tree");
  folder_.make("tree/a", std::string(3 * mib, 'x'));
  for (int i = 0; i < 50; ++i) folder_.make("tree/b" + std::to_string(i), "b");
  command limited("/bin/bash",
                  {"-c", "ulimit -f 1024; exec \"$0\" cp -r --parallel 1 \"$1\" \"$2\"",
                   tool_program(), (folder_ / "tree").string(), here("")});
  const command_result result = limited.finish();
  EXPECT_EQ(result.code, 11) << result.err;
  EXPECT_THAT(result.err, HasSubstr("File too large"));
  for (int i = 0; i < 50; ++i) EXPECT_EQ(content_of(here("tree/b" + std::to_string(i))), "b");
  EXPECT_FALSE(std::filesystem::exists(here("tree/a")));
}

TEST_F(CopyTrouble, LeavesOutADirectoryThatCanNotBe) {
  std::filesystem::create_directories(folder_ / "tree/a/b");
  folder_.make("tree/a/b/x", "x");
  folder_.make("tree/z", "z");
  std::filesystem::create_directories(folder_ / "here/tree");
  folder_.make("here/tree/a", "a file");
  const command_result result = run_tool({"cp", "-r", (folder_ / "tree").string(), here("")});
  EXPECT_EQ(result.code, 11) << result.err;
  EXPECT_THAT(result.err, HasSubstr("tree/a: cannot make the directory"));
  EXPECT_THAT(result.err, HasSubstr("1 of what was to be copied was not"));
  EXPECT_EQ(content_of(here("tree/z")), "z");
  EXPECT_EQ(content_of(here("tree/a")), "a file");
}

TEST_F(CopyTrouble, WritesNothingBesideItsTarget) {
  std::filesystem::create_directories(folder_ / "in/sub");
  folder_.make("in/sub/x", "x");
  std::filesystem::create_directories(folder_ / "out/deep");
  command running("/bin/bash", {"-c", "cd \"$1\"; exec \"$0\" cp -r .. \"$2\"", tool_program(),
                                (folder_ / "in/sub").string(), (folder_ / "out/deep").string()});
  EXPECT_EQ(running.finish().code, 0);
  EXPECT_THAT(names_in(folder_ / "out"), UnorderedElementsAre("deep"));
  EXPECT_EQ(content_of(folder_ / "out/deep/sub/x"), "x");
}

TEST_F(CopyTrouble, DoesNotWaitForAPipe) {
  ASSERT_EQ(::mkfifo(here("pipe").c_str(), 0600), 0);
  expect_failure(run_tool({"cp", here("pipe"), here("y")}), 2, "no regular file");
  expect_failure(run_tool({"hash", here("pipe")}), 2, "no regular file");
}

TEST_F(CopyTrouble, CopiesAFileWhoseNameIsNoUtf8) {
  const std::string from = folder_.make("here/bad\xff", "x");
  copy({from, here("good")});
  copy({from, (folder_ / "").string()});
  EXPECT_EQ(content_of(folder_ / "bad\xff"), "x");
  copy({from, url("good")});
  EXPECT_EQ(content_of(there("good")), "x");
  const command_result refused = run_tool({"cp", from, server_.url()});
  expect_failure(refused, 2, "\"bad\\xff\" can not be a name on a server");
}

TEST_F(CopyTrouble, KeepsNoRightsThatAreAnotherOwners) {
  folder_.make("here/x", "x");
  ASSERT_EQ(::chmod(here("x").c_str(), 04755), 0);
  copy({"-p", here("x"), here("y")});
  struct ::stat about = {};
  ASSERT_EQ(::stat(here("y").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 07777U, 0755U);
}

TEST_F(CopyTrouble, TellsWhatMemoryDoesNotTake) {
  std::string memory(10, 'x');
  ucx_server owner;
  const publication shown =
      owner.publish("m", std::as_writable_bytes(std::span(memory)), access::read_write);
  command running("/bin/bash", {"-c", "echo more than ten | exec \"$0\" put \"$1\"", tool_program(),
                                shown.url()});
  expect_failure(running.finish(), 12, "do not fit");
  folder_.make("here/x", "short");
  expect_failure(run_tool({"cp", "--resume", here("x"), shown.url()}), 2, "no file of a store");
}

}  // namespace
}  // namespace ucx::test
