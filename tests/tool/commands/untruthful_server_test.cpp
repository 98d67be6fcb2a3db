// What the tool says of servers that break the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "support/bytes/hex.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/child_process.hpp"
#include "support/process/process_memory.hpp"
#include "support/tool/tool.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;

class untruthful_server {
 public:
  explicit untruthful_server(const std::string& lie, const std::string& name = {})
      : process_(sibling_program("ucxio-untruthful-server"),
                 {lie, to_hex(std::as_bytes(std::span(name)))}),
        url_(process_.read_line(std::chrono::seconds(30)).value_or("it did not start")) {}

  const std::string& url() const noexcept { return url_; }
  /// Returns how many questions it has left unanswered since that was asked last.
  int unanswered() {
    int count = 0;
    std::chrono::milliseconds limit = std::chrono::seconds(20);  // for the first, which has to come
    while (process_.read_line(limit)) {
      ++count;
      limit = std::chrono::milliseconds(200);
    }
    return count;
  }

 private:
  child_process process_;
  std::string url_;
};

TEST(UntruthfulServer, OfAnotherVersionIsNotTalkedTo) {
  const untruthful_server other("version");
  for (const std::string verb : {"ls", "info"}) {
    expect_failure(run_tool({verb, other.url()}), 4, "version 2 of the control protocol");
  }
  expect_failure(run_tool({"cat", other.url() + "/x"}), 4, other.url());
  expect_failure(run_tool({"stat", other.url() + "/x"}), 4, other.url());
}

TEST(UntruthfulServer, IsBlamedForNamesThatAreNone) {
  for (const std::string& wrong :
       {std::string(), std::string("\xff"), std::string("a\0b", 3), std::string("\x9b") + "31m",
        std::string("\xed\xa0\x80"), std::string(1025, 'n')}) {
    const untruthful_server liar("names", wrong);
    const std::vector<std::vector<std::string>> commands{{"ls", liar.url()},
                                                         {"ls", "-l", liar.url()},
                                                         {"ls", "--json", liar.url()},
                                                         {"info", liar.url()}};
    for (const std::vector<std::string>& arguments : commands) {
      const command_result result = run_tool(arguments);
      EXPECT_EQ(result.code, 4) << result.err;
      EXPECT_THAT(result.err, HasSubstr(liar.url()));
      EXPECT_THAT(result.err, HasSubstr("the protocol"));
    }
  }
  const untruthful_server honest("names", "a name");
  EXPECT_EQ(run_tool({"ls", "-1", honest.url()}).out, "a name\n");
}

TEST(Info, PassesOverANameThatWasWithdrawnMeanwhile) {
  const untruthful_server server("gone");
  const command_result result = run_tool({"info", "--json", server.url()});
  EXPECT_EQ(result.code, 0) << result.err;
  const nlohmann::json all = nlohmann::json::parse(result.out, nullptr, false);
  ASSERT_EQ(all["server"]["names"].size(), 1U) << result.out;
  EXPECT_EQ(all["server"]["names"][0]["name"], "there");
  // One that was asked for by itself is missed.
  expect_failure(run_tool({"info", "--json", server.url() + "/gone"}), 3, "\"gone\"");
}

TEST(Cat, FailsWhereThereIsLessThanTheServerSaid) {
  const untruthful_server liar("enormous");
  const std::string enormous = liar.url() + "/enormous";
  expect_failure(run_tool({"cat", enormous, "--length", "4K"}), 2, enormous);
  expect_failure(run_tool({"cat", enormous, "--length", "4K"}), 2, "reach outside the region");
}

void read_at_least(command& from, std::size_t size) {
  for (std::size_t got = 0; got < size;) {
    const std::size_t more = from.read(std::size_t{1} << 20U).size();
    ASSERT_GT(more, 0U);
    got += more;
  }
}

TEST(UntruthfulServer, IsListedAsItsNamesCome) {
  const untruthful_server endless("endless");
  for (const std::vector<std::string>& how :
       std::vector<std::vector<std::string>>{{"-1"}, {"-l"}, {"--json"}}) {
    std::vector<std::string> line{"ls", endless.url()};
    line.insert(line.end(), how.begin(), how.end());
    command listing(tool_program(), line, command::output::pipe);
    constexpr std::size_t mebibyte = std::size_t{1} << 20U;
    read_at_least(listing, 2 * mebibyte);
    const std::size_t before = memory_is_measurable ? peak_memory(listing.pid()) : 0;
    read_at_least(listing, 16 * mebibyte);
    if (memory_is_measurable) {
      EXPECT_LT(peak_memory(listing.pid()), before + 8 * mebibyte) << how.front();
    }
    listing.close_pipe();
    EXPECT_EQ(listing.finish().code, 0);
  }
}

TEST(UntruthfulServer, FillsNoMemory) {
  const untruthful_server endless("endless");
  client reader(endless.url());
  std::error_code ec;
  EXPECT_TRUE(reader.list({.timeout = std::chrono::minutes(5)}, ec).empty());
  EXPECT_EQ(ec, errc::no_memory);
  std::size_t pages = 0;
  reader.visit([&](std::vector<entry>&&) { return ++pages < 10; });
  EXPECT_EQ(pages, 10U);
}

TEST(UntruthfulServer, IsNotBelievedWithoutEndWhereATreeIsWalked) {
  const temporary_directory here;
  const untruthful_server endless("endless");
  const untruthful_server bottomless("bottomless");
  for (const std::string& tree : {endless.url(), bottomless.url() + "/d"}) {
    const command_result copied = run_tool({"cp", "-r", "--max-list", "3M", tree, here / "x"});
    EXPECT_EQ(copied.code, 1) << copied.err;
    EXPECT_THAT(copied.err, HasSubstr(tree));
    EXPECT_THAT(copied.err, HasSubstr("3145728 bytes"));
    EXPECT_THAT(copied.err, HasSubstr("--max-list"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(here / ""));
  const command_result removed =
      run_tool({"rm", "-r", "--max-list", "3M", bottomless.url() + "/d"});
  EXPECT_EQ(removed.code, 11) << removed.err;
  EXPECT_THAT(removed.err, HasSubstr("--max-list"));
}

using Commands = std::vector<std::vector<std::string>>;

/// Runs each of these, which ask a server that leaves them unanswered.
void expect_one_question_each(untruthful_server& server, Commands commands) {
  for (std::vector<std::string>& line : commands) {
    const std::string name = line.front();
    line.insert(line.end(), {"--timeout", "2"});
    const command_result result = run_tool(line);
    EXPECT_EQ(result.code, 6) << name << ": " << result.err;
    EXPECT_EQ(server.unanswered(), 1) << name << ": " << result.err;
  }
}

Commands reading(const untruthful_server& server, const std::string& there) {
  const std::string x = server.url() + "/x";
  return {{"ls", server.url()},
          {"cat", x},
          {"cp", x, there},
          {"cp", "--verify", x, there},
          {"hash", x}};
}

TEST(UntruthfulServer, IsAskedOnceWhereItIsSilent) {
  const temporary_directory here;
  untruthful_server silent("silent");
  expect_one_question_each(silent, reading(silent, here / "there"));
}

TEST(UntruthfulServer, IsAskedOnceToReadWhereItIsMute) {
  const temporary_directory here;
  untruthful_server mute("mute");
  expect_one_question_each(mute, reading(mute, here / "there"));
}

TEST(UntruthfulServer, IsAskedOnceToWriteWhereItIsMute) {
  const temporary_directory here;
  const std::string file = here.make("file", "text");
  untruthful_server mute("mute");
  const std::string x = mute.url() + "/x";
  expect_one_question_each(mute,
                           {{"put", x}, {"cp", "--sparse", file, x}, {"cp", "--resume", file, x}});
}

TEST(UntruthfulServer, FillsNoDisk) {
  const untruthful_server liar("enormous");
  const std::string enormous = liar.url() + "/enormous";
  const temporary_directory here;
  expect_failure(run_tool({"cp", enormous, here / "x"}), 12, "bytes do not fit");
  expect_failure(run_tool({"cp", "--sparse", "--max-size", "1T", enormous, here / "x"}), 12,
                 "--max-size is 1099511627776");
  EXPECT_TRUE(std::filesystem::is_empty(here / ""));
}

TEST(UntruthfulServer, KeepsNobodyBusyWithHoles) {
  const untruthful_server liar("enormous");
  const std::string enormous = liar.url() + "/enormous";
  const temporary_directory here;
  for (const char* also : {"--sparse", "--resume"}) {
    expect_failure(run_tool({"cp", "--sparse", also, enormous, here / "x"}), 12, "--max-size");
  }
  EXPECT_TRUE(std::filesystem::is_empty(here / ""));
}

TEST(Connecting, IsRefusedByAServerThatIsFull) {
  const ucx_server owner(server_options{.max_clients = 1});
  const client first(owner.url());
  expect_failure(run_tool({"ls", owner.url()}), 4, "as many clients as it takes");
}

}  // namespace
}  // namespace ucx::test
