// What lies in a served directory and is not served: who copies or lists it is told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/process/child_process.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A served tree with three files, and six names that are none.
class Unserved : public ::testing::Test {
 protected:
  Unserved() {
    std::filesystem::create_directories(store_ / "tree/a");
    std::filesystem::create_directories(store_ / "tree/links");
    store_.make("tree/one", "1");
    store_.make("tree/bad\xff", "x");
    store_.make("tree/a/two", "2");
    store_.make("tree/a/three", "3");
    std::filesystem::create_symlink("two", store_ / "tree/a/link");
    std::filesystem::create_directory_symlink("..", store_ / "tree/a/up");
    EXPECT_EQ(::mkfifo((store_ / "tree/a/fifo").c_str(), 0600), 0);
    std::filesystem::create_symlink("../one", store_ / "tree/links/first");
    std::filesystem::create_symlink("missing", store_ / "tree/links/second");
  }

  /// Expects that three files were copied to `where`, and the rest was told.
  void expect_told(const command_result& result, const std::filesystem::path& where) const {
    EXPECT_EQ(result.code, 11) << result.err;
    EXPECT_THAT(result.err, HasSubstr("/tree: 1 entry is not served: "));
    EXPECT_THAT(result.err, HasSubstr("/tree/a: 3 entries are not served: symbolic links, "));
    EXPECT_THAT(result.err, HasSubstr("/tree/links: 2 entries are not served: "));
    EXPECT_THAT(result.err, HasSubstr("6 of what was to be copied were not\n"));
    EXPECT_EQ(content_of(where / "one"), "1");
    EXPECT_EQ(content_of(where / "a/two"), "2");
    EXPECT_EQ(content_of(where / "a/three"), "3");
    EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(where / "a/link")));
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  const temporary_directory store_;
  const temporary_directory folder_;
};

TEST_F(Unserved, IsToldWhereATreeIsCopied) {
  const tool_server server({"--store", "data=" + (store_ / "").string()});
  expect_told(run_tool({"cp", "-r", server.url("data/tree"), path("tree")}), folder_ / "tree");
}

TEST_F(Unserved, IsToldWhereAllOfAServerIsCopied) {
  const tool_server prefixed({"--store", "data=" + (store_ / "").string()});
  expect_told(run_tool({"cp", "-r", prefixed.url(), path("all")}), folder_ / "all/data/tree");
  const tool_server plain({"--store", (store_ / "").string()});
  expect_told(run_tool({"cp", "-r", plain.url(), path("plain")}), folder_ / "plain/tree");
}

TEST_F(Unserved, IsToldWhereServersCopy) {
  const tool_server server({"--store", (store_ / "").string()});
  const temporary_directory copies;
  const tool_server target(
      {"--store", (copies / "").string(), "--writable", "--fetch-from", "127.0.0.1"});
  expect_told(run_tool({"cp", "-r", "--direct", server.url("tree"), target.url()}),
              copies / "tree");
}

TEST_F(Unserved, IsToldWhereADirectoryIsListed) {
  const tool_server server({"--store", (store_ / "").string()});
  const command_result listed = run_tool({"ls", "-1", server.url("tree/a")});
  EXPECT_EQ(listed.code, 0);
  EXPECT_EQ(listed.out, "tree/a/three\ntree/a/two\n");
  EXPECT_THAT(listed.err, HasSubstr("ucxio: note: "));
  EXPECT_THAT(listed.err, HasSubstr("/tree/a: 3 entries are not served: "));
  std::filesystem::remove_all(store_ / "tree/a");
  EXPECT_THAT(run_tool({"ls", server.url("tree/links")}).err, HasSubstr("2 entries"));
}

TEST_F(Unserved, IsToldWhereAllOfAServerIsListed) {
  store_.make("top", "x");
  std::filesystem::create_symlink("top", store_ / "link at the top");
  for (const std::string prefix : {"data/", ""}) {
    SCOPED_TRACE(prefix);
    const std::string directory = (store_ / "").string();
    const tool_server server({"--store", prefix.empty() ? directory : "data=" + directory,
                              "by/itself=" + (store_ / "top").string()});
    for (const std::string how : {"--names", "--long", "--json"}) {
      const command_result listed = run_tool({"ls", how, server.url()});
      EXPECT_EQ(listed.code, 0) << listed.err;
      EXPECT_THAT(listed.out, HasSubstr(prefix + "tree/a/three"));
      EXPECT_THAT(listed.out, Not(HasSubstr("link")));
      EXPECT_EQ(std::count(listed.err.begin(), listed.err.end(), '\n'), 4) << listed.err;
      const auto said = [&](const std::string& at, const std::string& count) {
        return HasSubstr("ucxio: note: " + server.url() + at + ": " + count + " not served: ");
      };
      const std::string top = prefix.empty() ? "" : "/data";
      EXPECT_THAT(listed.err, said(top, "1 entry is"));
      EXPECT_THAT(listed.err, said(top + "/tree", "1 entry is"));
      EXPECT_THAT(listed.err, said(top + "/tree/a", "3 entries are"));
      EXPECT_THAT(listed.err, said(top + "/tree/links", "2 entries are"));
    }
  }
}

TEST_F(Unserved, IsNothingToTellWhereAllIsServed) {
  const tool_server server({"--store", "data=" + (folder_ / "").string(),
                            "by/itself=" + store_.make("x", "1").string()});
  std::filesystem::create_directories(folder_ / "empty/below");
  folder_.make("file", "1");
  const command_result listed = run_tool({"ls", "--names", server.url()});
  EXPECT_EQ(listed.code, 0);
  EXPECT_EQ(listed.out, "by/itself\ndata/file\n");
  EXPECT_EQ(listed.err, "");
}

TEST_F(Unserved, IsCountedOnceWhereAListHasManyPages) {
  for (int i = 0; i < 3000; ++i) store_.make("tree/links/f" + std::to_string(i), "");
  const tool_server server({"--store", (store_ / "").string()});
  const command_result listed = run_tool({"ls", "-1", server.url("tree/links")});
  EXPECT_EQ(std::count(listed.out.begin(), listed.out.end(), '\n'), 3000);
  EXPECT_THAT(listed.err, HasSubstr("2 entries are not served: "));
}

/// Programs that may not read one directory, also where the tests are the superuser's.
class ClosedDirectory : public ::testing::Test {
 protected:
  ClosedDirectory() {
    for (const char* name : {"tree/closed", "tree/open", "out"}) {
      std::filesystem::create_directories(folder_ / name);
    }
    folder_.make("tree/closed/secret", "x");
    folder_.make("tree/open/file", "1");
    folder_.make("tree/x", "2");
    std::filesystem::permissions(folder_ / "", std::filesystem::perms::all);
    std::filesystem::permissions(folder_ / "out", std::filesystem::perms::all);
    std::filesystem::permissions(folder_ / "tree/closed", std::filesystem::perms::none);
  }
  ~ClosedDirectory() override {
    std::filesystem::permissions(folder_ / "tree/closed", std::filesystem::perms::owner_all);
  }

  /// Returns the words that run the tool so.
  static std::vector<std::string> line(const std::vector<std::string>& arguments) {
    std::vector<std::string> all;
    // Another user might not even reach the tool.
    if (::geteuid() == 0) {
      const std::string without = "=-dac_override,-dac_read_search";
      all = {"setpriv", "--bounding-set" + without, "--inh-caps" + without};
    }
    all.push_back(tool_program());
    all.insert(all.end(), arguments.begin(), arguments.end());
    return all;
  }
  static command_result run(const std::vector<std::string>& arguments) {
    std::vector<std::string> all = line(arguments);
    all.insert(all.begin(), {"-c", "exec \"$@\"", "sh"});
    return command("/bin/sh", all).finish();
  }
  static void expect_told(const command_result& result, const std::string& why) {
    EXPECT_EQ(result.code, 11) << result.err;
    EXPECT_THAT(result.err, HasSubstr("tree/closed"));
    EXPECT_THAT(result.err, HasSubstr(why));
    EXPECT_THAT(result.err, HasSubstr("1 of what was to be copied was not\n"));
    EXPECT_THAT(result.err, Not(HasSubstr("secret")));
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  const temporary_directory folder_;
};

TEST_F(ClosedDirectory, OfAServerIsLeftOut) {
  std::vector<std::string> serve = line({"serve", "--quiet", "--store", path("")});
  serve.insert(serve.begin(), {"-c", "exec \"$@\"", "sh"});
  child_process server("/bin/sh", serve);
  const std::string url = server.read_line(std::chrono::seconds(30)).value_or("");
  ASSERT_NE(url, "");
  const std::string refused = "which the server may not read";
  expect_told(run_tool({"cp", "-r", url + "/tree", path("out/tree")}), refused);
  EXPECT_EQ(content_of(folder_ / "out/tree/open/file"), "1");
  EXPECT_EQ(content_of(folder_ / "out/tree/x"), "2");
  expect_told(run_tool({"cp", "-r", url, path("out/all")}), refused);
  EXPECT_EQ(content_of(folder_ / "out/all/tree/open/file"), "1");
  const command_result listed = run_tool({"ls", "--names", url});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("tree/open/file\n"));
  EXPECT_THAT(listed.err, HasSubstr("tree/closed"));
  EXPECT_THAT(listed.err, HasSubstr(refused));
  // Where it is all that was asked for there is nothing else to copy.
  expect_failure(run_tool({"cp", "-r", url + "/tree/closed", path("out/closed")}), 5, refused);
}

TEST_F(ClosedDirectory, OfThisMachineIsLeftOut) {
  expect_told(run({"cp", "-r", path("tree"), path("out/tree")}), "Permission denied");
  EXPECT_EQ(content_of(folder_ / "out/tree/open/file"), "1");
  EXPECT_EQ(content_of(folder_ / "out/tree/x"), "2");
}

TEST_F(ClosedDirectory, MayBeAFileToo) {
  std::filesystem::remove_all(folder_ / "tree/closed");
  folder_.make("tree/closed", "secret");
  std::filesystem::permissions(folder_ / "tree/closed", std::filesystem::perms::none);
  const temporary_directory store;
  const tool_server server({"--store", (store / "").string(), "--writable"});
  expect_told(run({"cp", "-r", path("tree"), server.url("new")}), "Permission denied");
  EXPECT_EQ(content_of(store / "new/x"), "2");
}

}  // namespace
}  // namespace ucx::test
