// `ucxio cat --follow`, over a file that somebody appends to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

class CatFollow : public ::testing::Test {
 protected:
  void append(const std::string& text) { std::ofstream(path_, std::ios::app) << text; }
  std::unique_ptr<command> begin(std::vector<std::string> more = {}) {
    std::vector<std::string> line{"cat", "-f", server_.url("log")};
    line.insert(line.end(), more.begin(), more.end());
    return std::make_unique<command>(tool_program(), line, command::output::pipe);
  }

  temporary_directory folder_;
  std::filesystem::path path_ = folder_.make("log", "first\n");
  tool_server server_{{"log=" + path_.string()}};
};

TEST_F(CatFollow, ShowsWhatComesWhenItComes) {
  const auto cat = begin();
  EXPECT_EQ(cat->read(6), "first\n");
  for (int i = 0; i < 20; ++i) {
    const std::string line = "line " + std::to_string(i) + '\n';
    append(line);
    EXPECT_EQ(cat->read(line.size()), line);
  }
  cat->send_signal(SIGINT);
  EXPECT_EQ(cat->finish().signal, SIGINT);
}

TEST_F(CatFollow, EndsWhenItHasWhatWasWanted) {
  const auto cat = begin({"--offset", "3", "--length", "8"});
  EXPECT_EQ(cat->read(3), "st\n");
  append("second\n");
  const command_result result = cat->finish();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "secon");
}

TEST_F(CatFollow, EndsQuietlyWhenNobodyReadsItAlthoughNothingComes) {
  const auto cat = begin();
  EXPECT_EQ(cat->read(6), "first\n");
  cat->close_pipe();
  const command_result result = cat->finish();
  EXPECT_TRUE(result.in_time);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
}

TEST_F(CatFollow, TellsOfALostConnection) {
  const auto cat = begin();
  EXPECT_EQ(cat->read(6), "first\n");
  server_.process().kill();
  const command_result result = cat->finish();
  EXPECT_EQ(result.code, 7) << result.err;
  EXPECT_THAT(result.err, ::testing::HasSubstr(server_.url("log")));
}

TEST_F(CatFollow, TellsOfAFileThatWasCutOff) {
  const auto cat = begin();
  EXPECT_EQ(cat->read(6), "first\n");
  std::filesystem::resize_file(path_, 2);
  const command_result result = cat->finish();
  EXPECT_EQ(result.code, 8) << result.err;
  EXPECT_THAT(result.err, ::testing::HasSubstr("cut off"));
}

TEST_F(CatFollow, FollowsOneFileOnly) {
  expect_failure(run_tool({"cat", "--follow", server_.url("log"), server_.url("log")}), 2,
                 "give one URL");
}

}  // namespace
}  // namespace ucx::test
