// `ucxio serve --address-file`, and clients that have nothing but that file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "support/files/temporary_directory.hpp"
#include "support/tool/tool.hpp"
#include "ucx/client.hpp"
#include "ucx/fstream.hpp"
#include "ucx/stream_options.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class ServeByAddressFile : public ::testing::Test {
 protected:
  std::string file() const { return (directory_ / "address").string(); }
  std::string url() const { return "ucx+file://" + file(); }

  temporary_directory directory_;
  const std::string text_ = directory_.make("text", std::string(3'000'003, 'x').append("\n"));
};

TEST_F(ServeByAddressFile, LeadsClientsToItAsLongAsItRuns) {
  tool_server server({"--address-file", file(), "a text=" + text_});
  EXPECT_EQ(server.url(), url());
  EXPECT_EQ(run_tool({"cat", url() + "/a%20text"}).out, content_of(text_));
  EXPECT_EQ(run_tool({"ls", "--names", url()}).out, "a text\n");
  EXPECT_THAT(run_tool({"info", url() + "/a%20text"}).out,
              HasSubstr("server      " + url() + "\n"));
  EXPECT_THAT(run_tool({"ls", "--json", url()}).out, HasSubstr(url() + "/a%20text"));
  server.process().send_signal(SIGTERM);
  EXPECT_TRUE(server.process().wait(30s).has_value());
  EXPECT_FALSE(std::filesystem::exists(file()));
  expect_failure(run_tool({"cat", url() + "/a%20text"}), 4, "no address file");
}

TEST_F(ServeByAddressFile, LeadsCopiesThereAndBack) {
  const tool_server server(
      {"--address-file", file(), "--store", "s=" + (directory_ / "").string(), "--writable"});
  EXPECT_EQ(run_tool({"cp", text_, url() + "/s/copies/"}).code, 0);
  EXPECT_EQ(content_of(directory_ / "copies/text"), content_of(text_));
  EXPECT_EQ(run_tool({"cp", "--resume", text_, url() + "/s/resumed"}).code, 0);
  EXPECT_EQ(content_of(directory_ / "resumed"), content_of(text_));
  EXPECT_EQ(run_tool({"mv", url() + "/s/resumed", url() + "/s/copies/"}).code, 0);
  const std::string back = (directory_ / "back").string();
  EXPECT_EQ(run_tool({"cp", "-r", url() + "/s/copies", back}).code, 0);
  EXPECT_EQ(content_of(back + "/resumed"), content_of(text_));
}

TEST_F(ServeByAddressFile, TakesNoPipesUnlessToldTo) {
  const tool_server server({"--address-file", file()});
  expect_failure(run_tool({"pipe", "receive", url() + "/any"}), 1, "takes no pipes");
}

TEST_F(ServeByAddressFile, LeadsToNobodyWhenTheServerWasKilled) {
  {
    tool_server server({"--address-file", file(), "text=" + text_});
    server.process().kill();
  }
  EXPECT_TRUE(std::filesystem::exists(file()));
  const command_result result = run_tool({"--timeout", "3", "cat", url() + "/text"});
  EXPECT_TRUE(result.in_time);
  EXPECT_THAT(result.err, HasSubstr(url()));
  EXPECT_TRUE(result.code == 4 || result.code == 6 || result.code == 7) << result.err;
  // The next one replaces it.
  const tool_server server({"--address-file", file(), "text=" + text_});
  EXPECT_EQ(run_tool({"cat", url() + "/text"}).out, content_of(text_));
}

TEST_F(ServeByAddressFile, ListensAsWellWhereThatIsSaid) {
  const tool_server server({"--address-file", file(), "--bind", "127.0.0.1:0", "text=" + text_});
  EXPECT_THAT(server.url(), ::testing::StartsWith("ucx://127.0.0.1:"));
  EXPECT_EQ(run_tool({"cat", server.url("text")}).out, content_of(text_));
  EXPECT_EQ(run_tool({"cat", url() + "/text"}).out, content_of(text_));
}

TEST_F(ServeByAddressFile, OverwritesNoOtherFile) {
  expect_failure(run_tool({"serve", "--ucx", "--address-file", text_, "text=" + text_}), 2,
                 "a file, which no server wrote");
  EXPECT_EQ(content_of(text_).size(), 3'000'004U);
}

TEST_F(ServeByAddressFile, StreamsGoOnWithAServerThatWasStartedAgain) {
  std::optional<tool_server> server;
  server.emplace(std::vector<std::string>{"--address-file", file(), "text=" + text_});
  stream_options options;
  options.reconnect_timeout = 30s;
  ifstream in(url() + "/text", std::ios::in, options);
  std::string begin(1000, '\0');
  ASSERT_TRUE(in.read(begin.data(), 1000)) << in.error_message();
  client used = client::shared(ucx::url(url()));
  server->process().kill();
  server.emplace(std::vector<std::string>{"--address-file", file(), "text=" + text_});
  std::string rest;
  std::getline(in, rest);
  EXPECT_TRUE(in) << in.error_message();
  EXPECT_EQ(rest.size(), 3'000'003U - 1000U);
}

}  // namespace
}  // namespace ucx::test
