// `ucxio serve --unix`: servers and clients of one machine, which know each other's users.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class UnixTool : public ::testing::Test {
 protected:
  std::string place() const { return (folder_ / "x.sock").string(); }
  std::string file() const { return folder_.make("notes", "a secret text").string(); }
  std::string told_by(const std::vector<std::string>& arguments) const {
    const command_result result = run_tool(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }
  /// Runs the tool as another user, whom the rights of the files leave out of nothing.
  command_result as_other_user(const std::vector<std::string>& arguments) const {
    std::vector<std::string> line{"--reuid=12345", "--regid=12345", "--clear-groups",
                                  tool_program()};
    line.insert(line.end(), arguments.begin(), arguments.end());
    return command("/usr/bin/setpriv", line).finish();
  }
  std::string why_no_other_user() const {
    if (::geteuid() != 0 || ::access("/usr/bin/setpriv", X_OK) != 0) {
      return "this process may not become another user";
    }
    if (as_other_user({"--version"}).code != 0) return "another user may not run this program";
    return {};
  }

  const temporary_directory folder_;
};

TEST_F(UnixTool, ServesAllCommands) {
  std::filesystem::create_directory(folder_ / "store");
  tool_server served({"--unix=" + place(), "--store", "s=" + (folder_ / "store").string(),
                      "--writable", "--pipes", "notes=" + file()});
  EXPECT_EQ(served.url(), "ucx+unix://" + place());
  EXPECT_THAT(told_by({"ls", served.url()}), HasSubstr("notes"));
  EXPECT_EQ(told_by({"cat", served.url("notes")}), "a secret text");
  EXPECT_EQ(told_by({"cp", file(), served.url("s/copy")}), "");
  EXPECT_EQ(content_of(folder_ / "store" / "copy"), "a secret text");
  EXPECT_EQ(told_by({"cp", served.url("s/copy"), (folder_ / "back").string()}), "");
  EXPECT_EQ(content_of(folder_ / "back"), "a secret text");
  EXPECT_EQ(command("/bin/sh",
                    {"-c", "printf put | \"$0\" put \"$1\"", tool_program(), served.url("s/put")})
                .finish()
                .err,
            "");
  EXPECT_EQ(content_of(folder_ / "store" / "put"), "put");
  EXPECT_THAT(told_by({"hash", served.url("notes")}), HasSubstr("notes"));
  EXPECT_THAT(told_by({"info", served.url()}), HasSubstr("socket/unix"));
  command receiving(tool_program(), {"pipe", "receive", served.url("backup")});
  EXPECT_EQ(command("/bin/sh", {"-c", "printf piped | \"$0\" pipe send \"$1\"", tool_program(),
                                served.url("backup")})
                .finish()
                .code,
            0);
  EXPECT_EQ(receiving.finish().out, "piped");
  served.process().send_signal(SIGTERM);
  EXPECT_TRUE(soon([this] { return !std::filesystem::exists(place()); }));
}

TEST_F(UnixTool, ServesAtAPlaceOfItsOwn) {
  const tool_server one({"--unix", "notes=" + file()});
  const tool_server other({"--unix", "notes=" + file()});
  EXPECT_THAT(one.url(), StartsWith("ucx+unix:///"));
  EXPECT_NE(one.url(), other.url());
  EXPECT_EQ(told_by({"cat", one.url("notes")}), "a secret text");
}

TEST_F(UnixTool, ReplacesTheSocketOfAKilledServer) {
  {
    tool_server first({"--unix=" + place(), file()});
    expect_failure(run_tool({"serve", "--unix=" + place(), file()}), 4, "a server listens there");
    first.process().kill();
  }
  EXPECT_TRUE(std::filesystem::exists(place()));
  expect_failure(run_tool({"ls", "ucx+unix://" + place()}), 4, place());
  const tool_server next({"--unix=" + place(), file()});
  EXPECT_THAT(told_by({"ls", next.url()}), HasSubstr("notes"));
}

TEST_F(UnixTool, IsToldOfWrongPlaces) {
  expect_failure(run_tool({"serve", "--unix=" + place(), "--bind", "127.0.0.1:0", file()}), 2,
                 "--unix");
  expect_failure(run_tool({"serve", "--unix=/tmp/x", file()}), 2, ".sock");
  expect_failure(run_tool({"serve", "--peer-user", "0", file()}), 2, "--unix");
  expect_failure(run_tool({"serve", "--unix=" + place(), "--peer-user", "no such", file()}), 2,
                 "there is no user \"no such\"");
  expect_failure(run_tool({"ls", "ucx+unix://" + place()}), 4, "no socket is there");
  expect_failure(run_tool({"ls", "ucx+unix:///tmp/x"}), 2, ".sock");
}

TEST_F(UnixTool, LetsNoOtherUserIn) {
  if (const std::string why = why_no_other_user(); !why.empty()) GTEST_SKIP() << why;
  const tool_server served({"--unix=" + place(), "notes=" + file()});
  // The directory is closed, then the socket; then the server itself refuses.
  for (int step = 0; step < 3; ++step) {
    ASSERT_EQ(::chmod((folder_ / "").c_str(), step > 0 ? 0711 : 0700), 0);
    ASSERT_EQ(::chmod(place().c_str(), step > 1 ? 0666 : 0600), 0);
    for (const std::vector<std::string>& asked :
         {std::vector<std::string>{"ls", served.url(), "--peer-user", "0"},
          std::vector<std::string>{"cat", served.url("notes"), "--peer-user", "root"}}) {
      const command_result refused = as_other_user(asked);
      expect_failure(refused, 5, place());
      EXPECT_EQ(refused.out, "");
      EXPECT_THAT(refused.err, Not(HasSubstr("secret")));
    }
  }
}

TEST_F(UnixTool, LetsNamedUsersIn) {
  if (const std::string why = why_no_other_user(); !why.empty()) GTEST_SKIP() << why;
  ASSERT_EQ(::chmod((folder_ / "").c_str(), 0711), 0);
  const tool_server served({"--unix=" + place(), "--peer-user", "12345", "notes=" + file()});
  const command_result read = as_other_user({"cat", served.url("notes")});
  EXPECT_EQ(read.out, "a secret text") << read.err;
}

}  // namespace
}  // namespace ucx::test
