// `ucxio cp -r`.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

/// Returns when a file was changed last, in seconds, and its mode.
std::pair<std::int64_t, unsigned> facts_of(const std::filesystem::path& file) {
  struct ::stat about = {};
  EXPECT_EQ(::stat(file.c_str(), &about), 0) << file;
  return {about.st_mtim.tv_sec, about.st_mode & 0777U};
}

using ::testing::HasSubstr;

/// A tree here, and a store that may be written.
class CopyTree : public ::testing::Test {
 protected:
  CopyTree() {
    std::filesystem::create_directories(folder_ / "tree/a/b");
    folder_.make("tree/one", "1");
    folder_.make("tree/a/two", "2");
    folder_.make(
        "tree/a/b/gr\xc3\xb6\xc3\x9f"
        "er %",
        std::string(3 << 20U, '3'));
    for (int i = 0; i < 300; ++i) folder_.make("tree/a/f" + std::to_string(i), std::to_string(i));
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Expects that a tree has the same files as the one that was made.
  void expect_tree(const std::filesystem::path& copied) {
    std::size_t files = 0;
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder_ / "tree")) {
      if (!each.is_regular_file()) continue;
      const auto within = std::filesystem::relative(each.path(), folder_ / "tree");
      EXPECT_TRUE(content_of(copied / within) == content_of(each.path())) << within;
      ++files;
    }
    std::size_t found = 0;
    for (const auto& each : std::filesystem::recursive_directory_iterator(copied)) {
      if (each.is_regular_file()) ++found;
    }
    EXPECT_EQ(found, files);
  }

  /// Expects that all but what the lines of the standard error stream tell was copied.
  void expect_partial(const command_result& result, const std::string& words) {
    EXPECT_EQ(result.code, 11) << result.err;
    EXPECT_THAT(result.err, HasSubstr(words));
    EXPECT_THAT(result.err, HasSubstr("1 of what was to be copied was not\n"));
  }

  const temporary_directory folder_;
  const temporary_directory store_;
  tool_server server_{{"--store", "data=" + (store_ / "").string(), "--writable"}};
};

TEST_F(CopyTree, KeepsTimesAndModesOfDirectories) {
  const std::vector<std::string> directories{"tree", "tree/a", "tree/a/b"};
  std::int64_t seconds = -100;
  for (const std::string& each : directories) {
    ASSERT_EQ(::chmod(path(each).c_str(), 0500), 0);
    const ::timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, path(each).c_str(), times, 0), 0);
    seconds += 1'000'000'000;
  }
  const tool_server owner({"--store", folder_ / ""});
  for (const bool is_remote : {false, true}) {
    const std::string to = is_remote ? "by-server" : "by-path";
    const command_result result =
        run_tool({"cp", "-r", "-p", is_remote ? owner.url("tree") : path("tree"), path(to)});
    EXPECT_EQ(result.code, 0) << result.err;
    for (const std::string& each : directories) {
      const auto was = facts_of(folder_ / each);
      const auto is = facts_of(folder_ / (to + each.substr(4)));
      EXPECT_EQ(is.first, was.first) << to << ' ' << each;
      EXPECT_EQ(is.second, is_remote ? 0755 : was.second) << to << ' ' << each;
    }
  }
  for (const std::string each :
       {"tree", "tree/a", "tree/a/b", "by-path", "by-path/a", "by-path/a/b"}) {
    ::chmod(path(each).c_str(), 0700);
  }
}

TEST_F(CopyTree, BringsATreeThereAndBack) {
  EXPECT_EQ(run_tool({"cp", "-r", path("tree"), server_.url("data/new")}).err, "");
  expect_tree(store_ / "new");
  EXPECT_EQ(run_tool({"cp", "-r", server_.url("data/new"), path("back")}).err, "");
  expect_tree(folder_ / "back");
  // Into what is there, under its own name.
  EXPECT_EQ(run_tool({"cp", "-r", "--verify", server_.url("data/new/"), path("back")}).err, "");
  expect_tree(folder_ / "back/new");
  EXPECT_EQ(run_tool({"cp", "-r", path("tree/"), server_.url("data/new")}).err, "");
  expect_tree(store_ / "new/tree");
}

TEST_F(CopyTree, BringsAllThatAServerHas) {
  EXPECT_EQ(run_tool({"cp", "-r", path("tree"), server_.url("data/all")}).err, "");
  EXPECT_EQ(run_tool({"cp", "-r", server_.url(), path("everything")}).err, "");
  expect_tree(folder_ / "everything/data/all");
}

TEST_F(CopyTree, LeavesNoPartialFilesWhereOneClientMayOpenFew) {
  const temporary_directory there;
  std::filesystem::create_directories(there / "tree/a");
  for (int i = 0; i < 60; ++i) there.make("tree/a/.f" + std::to_string(i) + ".ucxio-part", "part");
  const tool_server narrow({"--store", "data=" + (there / "").string(), "--writable",
                            "--max-open-files-per-client", "9"});
  const command_result result = run_tool({"cp", "-r", path("tree"), narrow.url("data/")});
  EXPECT_EQ(result.code, 0) << result.err;
  expect_tree(there / "tree");
}

TEST_F(CopyTree, CopiesHereToo) {
  std::filesystem::create_directories(folder_ / "tree/hollow");
  EXPECT_EQ(run_tool({"cp", "-r", path("tree"), path("copy")}).err, "");
  expect_tree(folder_ / "copy");
  EXPECT_TRUE(std::filesystem::is_directory(folder_ / "copy/hollow"));
  expect_failure(run_tool({"cp", "-r", path("tree"), path("tree/a")}), 2, "into itself");
}

TEST_F(CopyTree, KeepsEmptyDirectories) {
  std::filesystem::create_directories(folder_ / "tree/hollow/deep");
  std::filesystem::create_directories(folder_ / "tree/a/b/hollow");
  const command_result sent = run_tool({"cp", "-rp", path("tree"), server_.url("data/new")});
  EXPECT_EQ(sent.code, 0);
  EXPECT_EQ(sent.err, "ucxio: note: --preserve: a server keeps neither times nor modes\n");
  expect_tree(store_ / "new");
  EXPECT_TRUE(std::filesystem::is_empty(store_ / "new/hollow/deep"));
  EXPECT_TRUE(std::filesystem::is_empty(store_ / "new/a/b/hollow"));
  EXPECT_EQ(run_tool({"cp", "-rp", server_.url("data/new"), path("back")}).err, "");
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "back/hollow/deep"));

  EXPECT_EQ(run_tool({"cp", "-r", path("tree/hollow/deep"), server_.url("data/")}).err, "");
  EXPECT_TRUE(std::filesystem::is_empty(store_ / "deep"));

  // The same where the bytes do not pass here.
  const temporary_directory copies;
  const tool_server target(
      {"--store", (copies / "").string(), "--writable", "--fetch-from", "127.0.0.1"});
  const command_result direct =
      run_tool({"cp", "-rp", "--direct", server_.url("data/new"), target.url()});
  EXPECT_EQ(direct.code, 0);
  EXPECT_EQ(direct.err, "ucxio: note: --preserve: a server keeps neither times nor modes\n");
  EXPECT_TRUE(std::filesystem::is_empty(copies / "new/hollow/deep"));
}

TEST_F(CopyTree, LeavesLinksOutUnlessTheyAreFollowed) {
  std::filesystem::create_symlink("one", folder_ / "tree/link");
  expect_partial(run_tool({"cp", "-r", path("tree"), path("copy")}), "tree/link: a symbolic link");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "copy/link"));
  EXPECT_EQ(run_tool({"cp", "-rL", path("tree"), server_.url("data/x")}).err, "");
  EXPECT_EQ(content_of(store_ / "x/link"), "1");
}

TEST_F(CopyTree, TellsOfLinksThatLeadInACircle) {
  std::filesystem::create_directory_symlink("..", folder_ / "tree/a/up");
  expect_partial(run_tool({"cp", "-rL", path("tree"), path("copy")}), "above itself");
  expect_partial(run_tool({"cp", "-rL", path("tree"), server_.url("data/x")}), "above itself");
  std::filesystem::remove(folder_ / "tree/a/up");
  std::filesystem::create_symlink("self", folder_ / "tree/self");
  expect_partial(run_tool({"cp", "-rL", path("tree"), path("copy2")}), "in a circle");
}

TEST_F(CopyTree, TellsOfNamesThatAreNoUtf8) {
  folder_.make("tree/bad\xff", "x");
  expect_partial(run_tool({"cp", "-r", path("tree"), server_.url("data/x")}), "bad\\xff");
  std::filesystem::remove(folder_ / "tree/bad\xff");
  expect_tree(store_ / "x");
  folder_.make("tree/bad\xff", "x");
  EXPECT_EQ(run_tool({"cp", "-r", path("tree"), path("copy")}).code, 0);
  expect_tree(folder_ / "copy");
}

TEST_F(CopyTree, LeavesOutWhatIsNoFile) {
  ASSERT_EQ(::mkfifo(path("tree/pipe").c_str(), 0600), 0);
  expect_partial(run_tool({"cp", "-r", path("tree"), path("copy")}), "no regular file");
}

TEST_F(CopyTree, LeavesOutNamesThatLeadOutOfTheTarget) {
  const std::string memory = "content";
  ucx_server owner;
  std::vector<publication> shown;
  for (const std::string name : {"../escaped", "a/../../escaped", "/escaped", "fine/x"}) {
    shown.push_back(owner.publish(name, std::as_bytes(std::span(memory))));
  }
  const command_result result = run_tool({"cp", "-r", owner.url(), path("into")});
  EXPECT_EQ(result.code, 11) << result.err;
  EXPECT_THAT(result.err, HasSubstr("\"../escaped\" can not be a path"));
  EXPECT_THAT(result.err, HasSubstr("3 of what was to be copied were not"));
  EXPECT_EQ(content_of(folder_ / "into/fine/x"), memory);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "escaped"));
}

TEST_F(CopyTree, TellsWhichOfManySmallFilesItCouldNotWrite) {
  EXPECT_EQ(run_tool({"cp", "-r", path("tree"), server_.url("data/new")}).err, "");
  std::filesystem::create_directories(folder_ / "into/new/a/f8");
  expect_partial(run_tool({"cp", "-r", server_.url("data/new"), path("into")}), "a/f8");
  EXPECT_EQ(content_of(folder_ / "into/new/a/f9"), "9");
  EXPECT_EQ(content_of(folder_ / "into/new/a/f299"), "299");
}

/// What is new is written in another way than what is replaced.
TEST_F(CopyTree, WritesSmallFilesWhateverIsThere) {
  EXPECT_EQ(run_tool({"cp", "-r", path("tree"), server_.url("data/new")}).err, "");
  std::filesystem::create_directories(folder_ / "back/new/a");
  folder_.make("back/new/a/f1", "longer than what comes");
  folder_.make("back/elsewhere", "old");
  std::filesystem::create_symlink("../../elsewhere", folder_ / "back/new/a/f2");
  const std::string left = "back/new/a/.f3.ucxio-part";
  folder_.make(left, "left by an earlier copy");
  EXPECT_EQ(run_tool({"cp", "-r", server_.url("data/new"), path("back")}).err, "");
  EXPECT_EQ(content_of(folder_ / "back/new/a/f1"), "1");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "back/new/a/f2"));
  EXPECT_EQ(content_of(folder_ / "back/elsewhere"), "2");
  EXPECT_EQ(content_of(folder_ / "back/new/a/f3"), "3");
  EXPECT_FALSE(std::filesystem::exists(folder_ / left));
}

TEST_F(CopyTree, StoresSmallFilesWhateverIsThere) {
  std::filesystem::create_directories(store_ / "new/tree/a");
  store_.make("new/tree/a/f1", "longer than what comes");
  store_.make("new/tree/a/.f3.ucxio-part", "left by an earlier copy");
  EXPECT_EQ(run_tool({"cp", "-r", path("tree"), server_.url("data/new")}).err, "");
  expect_tree(store_ / "new/tree");
  EXPECT_EQ(content_of(store_ / "new/tree/a/f1"), "1");
  EXPECT_FALSE(std::filesystem::exists(store_ / "new/tree/a/.f3.ucxio-part"));
}

TEST_F(CopyTree, TellsWhichOfManySmallFilesItCouldNotStore) {
  std::filesystem::create_directories(store_ / "new/tree/a/f8");
  folder_.make("tree/a/.f9.ucxio-part", "what looks like an unfinished copy");
  const command_result result = run_tool({"cp", "-r", path("tree"), server_.url("data/new")});
  EXPECT_EQ(result.code, 11) << result.err;
  EXPECT_THAT(result.err, HasSubstr("a/f8"));
  EXPECT_THAT(result.err, HasSubstr(".f9.ucxio-part"));
  EXPECT_EQ(content_of(store_ / "new/tree/a/f9"), "9");
  EXPECT_EQ(content_of(store_ / "new/tree/a/f299"), "299");
}

TEST_F(CopyTree, GoesOnWhereItWas) {
  EXPECT_EQ(run_tool({"cp", "-r", path("tree"), server_.url("data/new")}).err, "");
  std::filesystem::remove(store_ / "new/a/f7");
  store_.make("new/a/f8", "another");
  store_.make("new/a/f9", "0");
  const auto moved = [this](const std::string& from, const std::string& to) {
    const command_result result =
        run_tool({"cp", "-r", "--resume", "--progress", "json", from, to});
    EXPECT_EQ(result.code, 0) << result.err;
    const auto last = nlohmann::json::parse(result.err.substr(result.err.rfind("{\"bytes\"")));
    EXPECT_EQ(last["files"], last["total_files"]);
    return last["average_bytes_per_second"] != 0.0;
  };
  EXPECT_TRUE(moved(path("tree/."), server_.url("data/new")));
  expect_tree(store_ / "new");
  EXPECT_FALSE(moved(path("tree/."), server_.url("data/new")));
  EXPECT_TRUE(moved(server_.url(), path("whole")));
  EXPECT_FALSE(moved(server_.url(), path("whole")));
  expect_tree(folder_ / "whole/data/new");
}

TEST_F(CopyTree, EndsAtOnceWhenTheServerIsGone) {
  const std::string url = server_.url("data/x");
  server_.process().kill();
  expect_failure(run_tool({"cp", "-r", path("tree"), url}), 4, "ucxs://");
}

}  // namespace
}  // namespace ucx::test
