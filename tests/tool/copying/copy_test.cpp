// `ucxio cp`: single files, and what happens in the middle of them.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
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

class Copy : public copy_place {};

TEST_F(Copy, BringsEverySizeThereAndBack) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, mib - 1, mib, mib + 1, 9 * mib + 3}) {
    const std::string content = pattern_text(size);
    folder_.make("here/x", content);
    copy({here("x"), url("sub/x")});
    EXPECT_TRUE(content_of(there("sub/x")) == content) << size;
    copy({url("sub/x"), here("back")});
    EXPECT_TRUE(content_of(here("back")) == content) << size;
    copy({"--verify", "--sparse", "--parallel", "3", url("sub/x"), url("again")});
    EXPECT_TRUE(content_of(there("again")) == content) << size;
    copy({"--verify", here("x"), here("beside")});
    EXPECT_TRUE(content_of(here("beside")) == content) << size;
  }
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre("x", "back", "beside"));
}

TEST_F(Copy, PutsFilesIntoDirectoriesUnderTheirNames) {
  store_.make("a", "1");
  store_.make("b b", "2");
  copy({url("a"), url("b%20b"), folder_ / "here"});
  EXPECT_EQ(content_of(here("a")), "1");
  EXPECT_EQ(content_of(here("b b")), "2");
  copy({here("a"), here("b b"), url("new/")});
  EXPECT_EQ(content_of(there("new/b b")), "2");
  copy({here("a"), server_.url()});
  EXPECT_EQ(content_of(there("a")), "1");
  expect_failure(run_tool({"cp", url("a"), url("b%20b"), here("neither")}), 2, "no directory");
  const command_result some = run_tool({"cp", url("a"), url("gone"), url("new"), here("")});
  EXPECT_EQ(some.code, 11);
  EXPECT_THAT(some.err, HasSubstr("\"gone\""));
  EXPECT_THAT(some.err, HasSubstr("new is a directory"));
  EXPECT_THAT(some.err, HasSubstr("2 of what was to be copied were not\n"));
  expect_failure(run_tool({"cp", url("a"), here("a"), (folder_ / "here").string()}), 2, "two of");
}

TEST_F(Copy, ReplacesAFileAndWhatALinkLeadsTo) {
  store_.make("x", "new");
  folder_.make("here/x", "old, and longer");
  std::filesystem::create_symlink("x", here("link"));
  copy({url("x"), here("link")});
  EXPECT_TRUE(std::filesystem::is_symlink(here("link")));
  EXPECT_EQ(content_of(here("x")), "new");
}

TEST_F(Copy, WritesMemoryOfAFixedSize) {
  std::string memory(mib, 'x');
  ucx_server owner;
  const publication shown =
      owner.publish("m", std::as_writable_bytes(std::span(memory)), access::read_write);
  const std::string content = pattern_text(mib);
  folder_.make("here/x", content);
  copy({here("x"), shown.url()});
  EXPECT_TRUE(memory == content);
  folder_.make("here/x", content + "x");
  expect_failure(run_tool({"cp", here("x"), shown.url()}), 12, "do not fit");
  copy({shown.url(), here("back")});
  EXPECT_TRUE(content_of(here("back")) == content);
}

TEST_F(Copy, KeepsTheTimeWhereItIsAsked) {
  store_.make("x", "1");
  const auto long_ago = std::filesystem::last_write_time(there("x")) - std::chrono::hours(24 * 365);
  std::filesystem::last_write_time(there("x"), long_ago);
  copy({"-p", url("x"), here("x")});
  EXPECT_EQ(std::filesystem::last_write_time(here("x")), long_ago);
  std::filesystem::permissions(here("x"), std::filesystem::perms::owner_all);
  copy({"-p", here("x"), here("y")});
  EXPECT_EQ(std::filesystem::last_write_time(here("y")), long_ago);
  EXPECT_EQ(std::filesystem::status(here("y")).permissions(), std::filesystem::perms::owner_all);
}

TEST_F(Copy, KeepsTimesBefore1970AndBeyond2262) {
  store_.make("x", "1");
  for (const std::int64_t seconds : {std::int64_t{-86400}, std::int64_t{10'413'792'000}}) {
    const ::timespec times[2] = {{seconds, 7}, {seconds, 7}};
    ASSERT_EQ(::utimensat(AT_FDCWD, there("x").c_str(), times, 0), 0);
    struct ::stat was = {};
    ASSERT_EQ(::stat(there("x").c_str(), &was), 0);
    for (const std::string& from : {url("x"), there("x")}) {
      copy({"-p", from, here("x")});
      struct ::stat is = {};
      ASSERT_EQ(::stat(here("x").c_str(), &is), 0);
      EXPECT_EQ(is.st_mtim.tv_sec, was.st_mtim.tv_sec) << from;
      EXPECT_EQ(is.st_mtim.tv_nsec, was.st_mtim.tv_nsec) << from;
    }
  }
}

TEST_F(Copy, MakesHolesOfZeros) {
  std::string content = pattern_text(64 * 1024) + std::string(8 * mib, '\0') + "end";
  content += std::string(3 * mib, '\0');
  folder_.make("here/x", content);
  copy({"--sparse", here("x"), url("x")});
  copy({"--sparse", "--verify", url("x"), here("back")});
  for (const std::string& made : {there("x"), here("back")}) {
    EXPECT_TRUE(content_of(made) == content);
    struct ::stat about = {};
    ASSERT_EQ(::stat(made.c_str(), &about), 0);
    EXPECT_LT(about.st_blocks * 512, 2 * static_cast<long>(mib)) << made;
  }
}

TEST_F(Copy, IsToldOfWrongArguments) {
  folder_.make("here/x", "1");
  const std::string from = here("x");
  const std::string to = here("y");
  expect_failure(run_tool({"cp", from}), 2, "where to");
  expect_failure(run_tool({"cp", "--bwlimit", "nonsense", from, to}), 2, "\"nonsense\"");
  expect_failure(run_tool({"cp", "--bwlimit", "0", from, to}), 2, "never end");
  expect_failure(run_tool({"cp", "--parallel", "0", from, to}), 2, "--parallel");
  expect_failure(run_tool({"cp", "--parallel", "65", from, to}), 2, "--parallel");
  expect_failure(run_tool({"cp", "--progress", "some", from, to}), 2, "some");
  expect_failure(run_tool({"cp", from, from}), 2, "to itself");
  expect_failure(run_tool({"cp", (folder_ / "here").string(), to}), 2, "-r");
  expect_failure(run_tool({"cp", "", to}), 2, "empty");
  expect_failure(run_tool({"cp", here("missing"), to}), 3, "missing");
  expect_failure(run_tool({"cp", "/proc/self/status", to}), 2, "how long");
  expect_failure(run_tool({"cp", from, here("no/such")}), 3, "no/");
  expect_failure(run_tool({"cp", from, here("no/")}), 3, "no/");
  expect_failure(run_tool({"cp", url("missing"), to}), 3, "missing");
  expect_failure(run_tool({"cp", url("x"), "ucx://127.0.0.1:1/x"}), 4, "ucx://127.0.0.1:1");
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre("x"));
}

TEST_F(Copy, TellsOfAFullDiskAtEitherEnd) {
  folder_.make("here/x", pattern_text(3 * mib));
  expect_failure(run_tool({"cp", here("x"), "/dev/full"}), 12, "No space left");
  const tool_server small({"--memory-store", "1M"});
  expect_failure(run_tool({"cp", here("x"), small.url("x")}), 12, small.url("x"));
  expect_failure(run_tool({"cat", small.url("x")}), 3, "x");
  // A limit of the process's own is one, too.
  command limited("/bin/bash", {"-c", "ulimit -f 1024; exec \"$0\" cp \"$1\" \"$2\"",
                                tool_program(), here("x"), here("y")});
  expect_failure(limited.finish(), 12, "File too large");
}

TEST_F(Copy, IsRefusedWhereAStoreIsNotWritable) {
  folder_.make("here/x", "1");
  const tool_server reading({"--store", (folder_ / "here").string()});
  expect_failure(run_tool({"cp", here("x"), reading.url("y")}), 5, reading.url("y"));
}

/// A copy that goes so slowly that things happen meanwhile.
class CopyInTheMiddle : public Copy {
 protected:
  static constexpr std::size_t size = 16 * mib;

  CopyInTheMiddle() { store_.make("x", content_); }

  /// Begins to copy, and returns when `partial` has something.
  std::unique_ptr<command> begin(const std::string& from, const std::string& to,
                                 const std::string& partial, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"cp", from, to, "--bwlimit", "8M"};
    if (more.empty() || more[0] != "--timeout")
      arguments.insert(arguments.end(), {"--timeout", "10"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto running = std::make_unique<command>(tool_program(), arguments);
    EXPECT_TRUE(soon([&] {
      std::error_code ec;
      const auto there = std::filesystem::file_size(partial, ec);
      return !ec && there >= 2 * mib;
    }));
    return running;
  }

  const std::string content_ = pattern_text(size);
};

TEST_F(CopyInTheMiddle, LeavesWhatCanBeResumedWhenItIsInterrupted) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto running = begin(url("x"), here("y"), here(".y.ucxio-part"));
    running->send_signal(signal);
    const command_result result = running->finish();
    EXPECT_EQ(result.signal, signal);
    EXPECT_THAT(result.err, HasSubstr("interrupted; --resume"));
    EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre(".y.ucxio-part"));
    const std::string part = content_of(here(".y.ucxio-part"));
    EXPECT_LT(part.size(), size);
    EXPECT_TRUE(part == content_.substr(0, part.size()));
    const command_result resumed =
        run_tool({"cp", "--resume", "--progress", "json", url("x"), here("y")});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_THAT(resumed.err, HasSubstr("\"done\":true"));
    EXPECT_TRUE(content_of(here("y")) == content_);
    std::filesystem::remove(here("y"));
  }
}

TEST_F(CopyInTheMiddle, LeavesNothingOnAServerUnlessItMayBeResumed) {
  folder_.make("here/x", content_);
  const auto in_spool = [this] {
    for (const auto& each : std::filesystem::directory_iterator(store_ / ".ucxio-unfinished")) {
      return each.path().string();
    }
    return there("nothing");
  };
  auto running = std::make_unique<command>(
      tool_program(), std::vector<std::string>{"cp", here("x"), url("y"), "--bwlimit", "8M"});
  EXPECT_TRUE(soon([&] { return in_spool() != there("nothing"); }));
  running->send_signal(SIGINT);
  EXPECT_THAT(running->finish().err, HasSubstr("nothing is left"));
  EXPECT_TRUE(soon([&] { return in_spool() == there("nothing"); }));
  EXPECT_THAT(names_in(store_ / ""), UnorderedElementsAre("x", ".ucxio-unfinished"));

  running = begin(here("x"), url("y"), there(".y.ucxio-part"), {"--resume"});
  running->send_signal(SIGINT);
  EXPECT_THAT(running->finish().err, HasSubstr("interrupted; --resume"));
  EXPECT_FALSE(std::filesystem::exists(there("y")));
  EXPECT_TRUE(soon([&] { return run_tool({"cp", "--resume", here("x"), url("y")}).code == 0; }));
  EXPECT_TRUE(content_of(there("y")) == content_);
  EXPECT_FALSE(std::filesystem::exists(there(".y.ucxio-part")));
}

TEST_F(CopyInTheMiddle, KeepsWhatIsThereWhenTheServerIsKilled) {
  const auto running = begin(url("x"), here("y"), here(".y.ucxio-part"));
  server_.process().kill();
  expect_failure(running->finish(), 7, url("x"));
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre(".y.ucxio-part"));
  const tool_server again({"--store", (store_ / "").string()});
  copy({"--resume", again.url("x"), here("y")});
  EXPECT_TRUE(content_of(here("y")) == content_);
}

TEST_F(CopyInTheMiddle, TimesOutWhenTheServerIsStopped) {
  const auto running = begin(url("x"), here("y"), here(".y.ucxio-part"), {"--timeout", "3"});
  server_.process().stop();
  expect_failure(running->finish(), 6, url("x"));
}

TEST_F(CopyInTheMiddle, RefusesASourceThatChangesMeanwhile) {
  const auto running = begin(url("x"), here("y"), here(".y.ucxio-part"));
  std::ofstream(there("x"), std::ios::app) << "more";
  expect_failure(running->finish(), 8, "changed");
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre());
}

TEST_F(CopyInTheMiddle, TellsWhereTheCopyIsNotWhatItsSourceIs) {
  const auto running = begin(url("x"), here("y"), here(".y.ucxio-part"), {"--verify"});
  std::fstream spoiled(here(".y.ucxio-part"), std::ios::in | std::ios::out);
  spoiled.seekp(mib + 5);
  spoiled.put(static_cast<char>(content_[mib + 5] ^ 1));
  spoiled.close();
  expect_failure(running->finish(), 10, "from 1048576 on");
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre());
}

TEST_F(CopyInTheMiddle, EndsBetweenTheFilesOfATree) {
  for (int i = 0; i < 200; ++i) folder_.make("here/f" + std::to_string(i), std::string(9999, 'x'));
  command running(tool_program(),
                  {"cp", "-r", "--bwlimit", "200K", (folder_ / "here").string(), url("tree")});
  EXPECT_TRUE(soon([&] { return std::filesystem::exists(there("tree/f1")); }));
  running.send_signal(SIGINT);
  const command_result result = running.finish();
  EXPECT_EQ(result.signal, SIGINT);
  EXPECT_EQ(result.err, "ucxio: interrupted; nothing is left of what was not finished\n");
  for (const std::string& name : names_in(store_ / "tree")) {
    EXPECT_EQ(std::filesystem::file_size(there("tree/" + name)), 9999U) << name;
  }
}

TEST_F(CopyInTheMiddle, DoesNotWriteWhatAnotherCopyWrites) {
  const auto running = begin(url("x"), here("y"), here(".y.ucxio-part"));
  expect_failure(run_tool({"cp", url("x"), here("y")}), 1, "another copy");
  EXPECT_EQ(running->finish().code, 0);
  EXPECT_TRUE(content_of(here("y")) == content_);
}

TEST_F(Copy, DoesNotResumeWhatWasChanged) {
  const std::string content = pattern_text(4 * mib);
  store_.make("x", content);
  std::string other = content.substr(0, 3 * mib);
  other[2 * mib + 5] ^= 1;
  folder_.make("here/.x.ucxio-part", other);
  expect_failure(run_tool({"cp", "--resume", url("x"), here("x")}), 8, "from 2097152 on");
  folder_.make("here/.x.ucxio-part", content + "more");
  expect_failure(run_tool({"cp", "--resume", url("x"), here("x")}), 8, "4194304 bytes");
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre(".x.ucxio-part"));
  copy({url("x"), here("x")});
  EXPECT_TRUE(content_of(here("x")) == content);

  folder_.make("here/x", content);
  store_.make(".z.ucxio-part", other);
  expect_failure(run_tool({"cp", "--resume", here("x"), url("z")}), 8, "from 2097152 on");
  store_.make(".z.ucxio-part", content.substr(0, 3 * mib + 77));
  copy({"--resume", "--verify", here("x"), url("z")});
  EXPECT_TRUE(content_of(there("z")) == content);
}

}  // namespace
}  // namespace ucx::test
