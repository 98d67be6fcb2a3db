// What the tool says of servers that break the rules.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "support/child_process.hpp"
#include "support/hex.hpp"
#include "support/tool.hpp"
#include "ucx/client.hpp"
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

TEST(Connecting, IsRefusedByAServerThatIsFull) {
  const server owner(server_options{.most_clients = 1});
  const client first(owner.url());
  expect_failure(run_tool({"ls", owner.url()}), 4, "as many clients as it takes");
}

}  // namespace
}  // namespace ucx::test
