// A server's agent where there is no IP address: it and its clients have nothing but the server's
// address file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A server with an address file and an agent, which listens nowhere, and a directory here.
class AgentWithoutIp : public ::testing::Test {
 protected:
  std::string here(const std::string& name) const { return (here_ / name).string(); }
  std::string there(const std::string& name) const { return (store_ / name).string(); }
  std::string url(const std::string& name) const { return server_.url(name); }

  static command_result copy(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "cp");
    return run_tool(arguments);
  }
  /// Expects that it went well, quietly.
  static void expect_copied(const std::vector<std::string>& arguments) {
    const command_result result = copy(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.out + result.err, "");
  }

  const temporary_directory folder_;
  const temporary_directory here_;
  const temporary_directory store_;
  tool_server server_{{"--address-file", (folder_ / "address").string(), "--store",
                       "s=" + (store_ / "").string(), "--writable", "--fetch-from", "127.0.0.1"}};
};

TEST_F(AgentWithoutIp, CompressesThereAndBack) {
  ASSERT_TRUE(server_.url().starts_with("ucx+file://")) << server_.url();
  const std::string all = log_text(4 * mib + 3);
  here_.make("x", all);
  for (const std::string by : {"zstd", "lz4"}) {
    expect_copied({"--compress", by, "--verify", here("x"), url("s/sub/" + by)});
    EXPECT_TRUE(content_of(there("sub/" + by)) == all) << by;
    expect_copied({"--compress", by, "--resume", url("s/sub/" + by), here(by)});
    EXPECT_TRUE(content_of(here(by)) == all) << by;
  }
}

TEST_F(AgentWithoutIp, CompressesTrees) {
  std::filesystem::create_directories(here_ / "tree/a");
  here_.make("tree/one", log_text(mib));
  for (int i = 0; i < 100; ++i) here_.make("tree/a/f" + std::to_string(i), log_text(1000));
  expect_copied({"--compress", "zstd", "-r", here("tree"), url("s/")});
  expect_copied({"--compress", "zstd", "-r", url("s/tree"), here("back")});
  EXPECT_TRUE(content_of(here("back/one")) == log_text(mib));
  EXPECT_EQ(names_in(here_ / "back/a").size(), 100U);
  EXPECT_EQ(content_of(here("back/a/f99")), log_text(1000));
}

TEST_F(AgentWithoutIp, CompressesFromServerToServer) {
  const temporary_directory others;
  const tool_server listening({"--store", (others / "").string(), "--writable", "--agent"});
  const std::string all = log_text(3 * mib);
  store_.make("x", all);
  expect_copied({"--compress", "zstd", url("s/x"), listening.url("y")});
  expect_copied({"--compress", "zstd", listening.url("y"), url("s/z")});
  expect_copied({"--compress", "zstd", url("s/z"), url("s/again")});
  EXPECT_TRUE(content_of(there("again")) == all);
}

TEST_F(AgentWithoutIp, FetchesFromServersThatListen) {
  const temporary_directory others;
  const tool_server owner({"--store", (others / "").string(), "--agent"});
  std::filesystem::create_directories(others / "tree/a b");
  const std::string all = log_text(3 * mib);
  others.make("tree/a b/x", all);
  others.make("one", "1");
  expect_copied({"--direct", "--verify", owner.url("one"), url("s/a%20new/name")});
  EXPECT_EQ(content_of(there("a new/name")), "1");
  expect_copied({"--direct", owner.url("one"), url("s/a%20new/")});
  EXPECT_EQ(content_of(there("a new/one")), "1");
  expect_copied({"--direct", "--compress", "zstd", "-r", owner.url("tree"), url("s/")});
  EXPECT_TRUE(content_of(there("tree/a b/x")) == all);
  const std::string elsewhere = owner.url("one").replace(7, 9, "localhost");
  expect_failure(copy({"--direct", elsewhere, url("s/one")}), 5, "--fetch-from localhost");
}

TEST_F(AgentWithoutIp, FetchesNothingByAFile) {
  store_.make("x", "1");
  const temporary_directory others;
  const tool_server target(
      {"--store", (others / "").string(), "--writable", "--fetch-from", "any"});
  for (const std::string& to : {target.url("y"), url("s/y")}) {
    const command_result result = copy({"--direct", url("s/x"), to});
    expect_failure(result, 2, url("s/x") + " is behind an address file");
    EXPECT_THAT(result.err, HasSubstr("copy without --direct"));
    EXPECT_THAT(result.err, HasSubstr("with --bind HOST:PORT, too"));
  }
  expect_failure(copy({"--direct", target.url("x"), here("y")}), 2, "is a path");
  EXPECT_THAT(names_in(others / ""), ::testing::Not(::testing::Contains("y")));
  EXPECT_FALSE(std::filesystem::exists(there("y")));
}

TEST_F(AgentWithoutIp, IsMissedWhereTheServerHasNone) {
  here_.make("x", "1");
  const tool_server plain({"--address-file", (folder_ / "plain").string(), here("x")});
  expect_failure(copy({"--compress", "zstd", plain.url("x"), here("y")}), 1,
                 "the server has no agent; `ucxio serve --agent` has one");
}

TEST_F(AgentWithoutIp, IsLostWithItsServer) {
  here_.make("x", log_text(16 * mib));
  command running(tool_program(), {"cp", "--compress", "lz4", "--resume", "--bwlimit", "2M",
                                   here("x"), url("s/x")});
  EXPECT_TRUE(soon([&] {
    std::error_code ec;
    const auto there_now = std::filesystem::file_size(there(".x.ucxio-part"), ec);
    return !ec && there_now >= 2 * mib;
  }));
  server_.process().kill();
  const command_result result = running.finish();
  EXPECT_EQ(result.code, lost) << result.err;
  EXPECT_FALSE(std::filesystem::exists(there("x")));
}

TEST_F(AgentWithoutIp, EndsWithItsServer) {
  server_.process().send_signal(SIGTERM);
  EXPECT_EQ(server_.process().wait(std::chrono::seconds(30)), 0);
  EXPECT_THAT(names_in(folder_ / ""), ElementsAre());
}

}  // namespace
}  // namespace ucx::test
