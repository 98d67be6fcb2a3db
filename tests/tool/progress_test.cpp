// What commands show on the standard error stream while they work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/pseudo_terminal.hpp"
#include "support/temporary_directory.hpp"
#include "support/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Progress : public ::testing::Test {
 protected:
  Progress() { folder_.make("x", std::string(3 << 20U, 'x')); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

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
  std::istringstream lines(result.err);
  std::vector<nlohmann::ordered_json> all;
  for (std::string line; std::getline(lines, line);) {
    all.push_back(nlohmann::ordered_json::parse(line));
  }
  ASSERT_GE(all.size(), 2U);
  std::vector<std::string> members;
  for (const auto& [name, value] : all.back().items()) members.push_back(name);
  EXPECT_THAT(members, ::testing::ElementsAre("bytes", "total_bytes", "files", "total_files",
                                              "seconds", "bytes_per_second",
                                              "average_bytes_per_second", "seconds_left", "done"));
  EXPECT_EQ(all.front()["done"], false);
  EXPECT_TRUE(all.front()["seconds_left"].is_number());
  EXPECT_EQ(all.back()["done"], true);
  EXPECT_EQ(all.back()["bytes"], 3 << 20U);
  EXPECT_EQ(all.back()["total_bytes"], 3 << 20U);
  EXPECT_EQ(all.back()["files"], 1);
}

}  // namespace
}  // namespace ucx::test
