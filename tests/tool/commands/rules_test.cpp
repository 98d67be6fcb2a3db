// A server's rules and audit, as users of the tool have them.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/tool/tool.hpp"
#include "ucx/client.hpp"
#include "ucx/url.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RulesOfServe : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  /// At once, and writable for nobody else.
  void write_rules(const std::string& text) const {
    std::ofstream(file("new")) << text;
    std::filesystem::permissions(file("new"), std::filesystem::perms::owner_read);
    std::filesystem::rename(file("new"), file("rules"));
  }

  /// Returns whether the audit has a line of reading "other.txt" with this outcome.
  bool has_told(const std::string& outcome) const {
    return content_of(folder_ / "audit")
               .find("\"name\":\"other.txt\",\"access\":\"read\",\"outcome\":\"" + outcome + '"') !=
           std::string::npos;
  }

  temporary_directory folder_;
};

TEST_F(RulesOfServe, HideAndShowAndAreReadAgainAtSighup) {
  folder_.make("notes.txt", "text");
  folder_.make("other.txt", "text");
  write_rules("allow anybody list,read notes.*\n");
  tool_server server({"--socket", "--rules", file("rules"), "--audit", file("audit"),
                      file("notes.txt"), file("other.txt")});
  EXPECT_THAT(run_tool({"ls", server.url()}).out, Not(HasSubstr("other.txt")));
  EXPECT_EQ(run_tool({"cat", server.url("notes.txt")}).out, "text");
  // Of strangers not every line is told.
  EXPECT_TRUE(soon([&] {
    expect_failure(run_tool({"cat", server.url("other.txt")}), 3, "other.txt");
    return has_told("no_such_name");
  }));
  EXPECT_THAT(run_tool({"info", server.url("notes.txt")}).out, HasSubstr("identity    anybody\n"));
  write_rules("allow anybody list,read other.*\n");
  server.process().send_signal(SIGHUP);
  EXPECT_TRUE(soon([&] {
    return run_tool({"cat", server.url("other.txt")}).code == 0 && has_told("ok");
  }));
  expect_failure(run_tool({"cat", server.url("notes.txt")}), 3, "notes.txt");
}

TEST_F(RulesOfServe, LeaveLimitsToTheirOption) {
  folder_.make("notes.txt", "text");
  tool_server server(
      {"--socket", "--limit", "connections=1", "--limit", "all.open-names=1k", file("notes.txt")});
  const client holder(url(server.url()), {.context = {.share_memory = false}});
  const command_result refused = run_tool({"ls", server.url()});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("has as many connections as it may have"));
}

TEST_F(RulesOfServe, StayInForceWhereTheNewOnesAreWrong) {
  folder_.make("notes.txt", "text");
  folder_.make("other.txt", "text");
  write_rules("allow anybody list,read notes.*\n");
  child_process server("/bin/sh", {"-c", "exec \"$0\" \"$@\" 2>'" + file("err") + "'",
                                   tool_program(), "serve", "--quiet", "--socket", "--rules",
                                   file("rules"), file("notes.txt"), file("other.txt")});
  const auto url = server.read_line(patience(std::chrono::seconds(30)));
  ASSERT_TRUE(url);
  write_rules("allow anybody list,read **\nallow nobody\n");
  server.send_signal(SIGHUP);
  EXPECT_TRUE(soon([&] {
    const std::string said = content_of(folder_ / "err");
    return said.find("error: the rules stay as they were") != said.npos &&
           said.find("line 2") != said.npos;
  })) << content_of(folder_ / "err");
  expect_failure(run_tool({"cat", *url + "/other.txt"}), 3, "other.txt");
  EXPECT_EQ(run_tool({"cat", *url + "/notes.txt"}).out, "text");
}

TEST_F(RulesOfServe, ThatAreWrongLetNoServerStart) {
  write_rules("# rules\nallow anybody\n");
  expect_failure(run_tool({"serve", "--socket", "--rules", file("rules")}), 1, "line 2");
  expect_failure(run_tool({"serve", "--socket", "--rules", file("none")}), 3, "none");
  expect_failure(run_tool({"serve", "--socket", "--audit", file("none/audit")}), 3, "audit");
}

}  // namespace
}  // namespace ucx::test
