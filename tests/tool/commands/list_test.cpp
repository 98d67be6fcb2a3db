#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/files/temporary_directory.hpp"
#include "support/tool/tool.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/server.hpp"
#include "ucx/version.hpp"

namespace ucx::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Returns what a command says as JSON.
json ask(std::vector<std::string> arguments) {
  arguments.push_back("--json");
  const command_result result = run_tool(arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out, nullptr, false);
}

/// A server with a file, memory that may be read and written, and memory that may be written only.
class Catalogue : public ::testing::Test {
 protected:
  ucx_server owner_;
  temporary_directory folder_;
  std::vector<std::byte> memory_ = std::vector<std::byte>(100);
  publication file_ = owner_.publish_file("a file", folder_.make("x", "12345"));
  publication both_ = owner_.publish("both", std::span(memory_), access::read_write);
  publication write_ = owner_.publish("c/write", std::span(memory_), access::write);
};

TEST_F(Catalogue, IsListedByName) {
  const command_result result = run_tool({"ls", owner_.url()});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out,
            "r-  file      5  a file\n"
            "rw  memory  100  both\n"
            "-w  memory  100  c/write\n");
}

TEST_F(Catalogue, IsListedInFull) {
  const command_result result = run_tool({"ls", "-l", owner_.url()});
  EXPECT_THAT(result.out, HasSubstr("r-  file      5  host  "));
  EXPECT_THAT(result.out, HasSubstr("  " + owner_.url() + "/a%20file\n"));
}

TEST_F(Catalogue, IsListedAsNames) {
  EXPECT_EQ(run_tool({"ls", "-1", owner_.url()}).out, "a file\nboth\nc/write\n");
}

TEST_F(Catalogue, IsListedAsJson) {
  const json listed = ask({"ls", owner_.url()});
  ASSERT_EQ(listed.size(), 3U);
  EXPECT_EQ(listed[0]["name"], "a file");
  EXPECT_EQ(listed[0]["size"], 5);
  EXPECT_EQ(listed[0]["type"], "file");
  EXPECT_EQ(listed[0]["access"], "read");
  EXPECT_EQ(listed[0]["memory"], "host");
  EXPECT_EQ(listed[0]["url"], owner_.url() + "/a%20file");
  EXPECT_EQ(listed[1]["access"], "read_write");
  EXPECT_EQ(listed[2]["access"], "write");
  EXPECT_EQ(listed[2]["type"], "memory");
}

TEST_F(Catalogue, IsListedForOneName) {
  const json listed = ask({"ls", both_.url()});
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0]["name"], "both");
  expect_failure(run_tool({"ls", owner_.url("nothing")}), 3, "\"nothing\"");
}

TEST_F(Catalogue, IsDescribedByStat) {
  const command_result result = run_tool({"stat", file_.url()});
  EXPECT_THAT(result.out, HasSubstr("name        a file\nsize        5\ntype        file\n"));
  const json described = ask({"stat", file_.url()});
  EXPECT_EQ(described, ask({"ls", file_.url()})[0]);
  expect_failure(run_tool({"stat", owner_.url("nothing")}), 3, "\"nothing\"");
}

TEST_F(Catalogue, IsExplainedByInfo) {
  const json all = ask({"info", owner_.url()});
  EXPECT_EQ(all["ucxio"], to_string(version()));
  EXPECT_EQ(all["ucx"], to_string(ucx_version()));
  EXPECT_EQ(all["protocol"], protocol_version());
  const json& met = all["server"];
  EXPECT_EQ(met["version"], to_string(version()));
  EXPECT_EQ(met["url"], owner_.url());
  EXPECT_FALSE(met["transports"].empty());
  ASSERT_EQ(met["names"].size(), 3U);
  EXPECT_EQ(met["names"][0]["name"], "a file");
  EXPECT_EQ(met["names"][0]["transfer_method"], "message");
  EXPECT_THAT(met["names"][0]["why"].get<std::string>(), HasSubstr("a file"));
  EXPECT_THAT(met["names"][1]["region"].get<std::string>(), HasSubstr("100 bytes"));
  EXPECT_EQ(met["names"][2]["transfer_method"], "message");
  EXPECT_THAT(met["names"][2]["why"].get<std::string>(),
              HasSubstr("not read where it lies: its owner does not let"));

  const command_result one = run_tool({"info", both_.url()});
  EXPECT_THAT(one.out, HasSubstr("\nboth\n  memory      host\n  transfer    "));
  EXPECT_THAT(one.out, ::testing::Not(HasSubstr("c/write")));
  expect_failure(run_tool({"info", owner_.url("nothing"), "--json"}), 3, "\"nothing\"");
}

TEST(List, ShowsThatNothingIsPublished) {
  const ucx_server owner;
  EXPECT_EQ(run_tool({"ls", owner.url()}).out, "");
  EXPECT_EQ(ask({"ls", owner.url()}), json::array());
}

TEST(List, ShowsMoreThanAPageOfNames) {
  ucx_server owner;
  std::vector<std::byte> memory(1);
  std::vector<publication> published;
  std::string expected;
  for (int i = 1000; i < 4000; ++i) {
    published.push_back(owner.publish(std::to_string(i), std::span(memory), access::read));
    expected += std::to_string(i) + '\n';
  }
  EXPECT_EQ(run_tool({"ls", "--names", owner.url()}).out, expected);
}

TEST(List, KeepsControlCharactersFromTheTerminal) {
  ucx_server owner;
  std::vector<std::byte> memory(1);
  const std::string name = "red\x1b[31m\nnext\xc2\x9b";
  const publication shown = owner.publish(name, std::span(memory), access::read);
  EXPECT_EQ(run_tool({"ls", "-1", owner.url()}).out, "red\\x1b[31m\\x0anext\\x9b\n");
  EXPECT_EQ(ask({"ls", owner.url()})[0]["name"], name);
  expect_failure(run_tool({"stat", owner.url(name + "x")}), 3, "red\\x1b[31m\\x0anext\\x9bx");
}

TEST(List, ShowsCharactersThatShowNothing) {
  ucx_server owner;
  std::vector<std::byte> memory(1);
  // One that deletes; right to left, which makes "exe.txt" of it; a zero-width space; a tag, beyond
  // U+FFFF; and what stays: letters that are not Latin, and a picture.
  const std::string name =
      "\x7f"
      "a\u202etxt.exe \u200b\U000e0041 \u05d0\u00e9\U0001f600";
  const publication shown = owner.publish(name, std::span(memory), access::read);
  const std::string visible = "\\x7fa\\u202etxt.exe \\u200b\\U000e0041 \u05d0\u00e9\U0001f600";
  EXPECT_EQ(run_tool({"ls", "-1", owner.url()}).out, visible + '\n');
  EXPECT_THAT(run_tool({"stat", shown.url()}).out, HasSubstr(visible));
  expect_failure(run_tool({"cat", owner.url(name + "x")}), 3, visible + 'x');
  const command_result as_json = run_tool({"ls", "--json", owner.url()});
  EXPECT_THAT(as_json.out, HasSubstr(R"("\u007fa\u202etxt.exe \u200b\udb40\udc41 )"));
  EXPECT_EQ(json::parse(as_json.out, nullptr, false)[0]["name"], name);
}

TEST(List, ShowsEachKindOfInvisibleCharacter) {
  ucx_server owner;
  std::vector<std::byte> memory(1);
  std::vector<publication> kept;
  const std::vector<std::pair<std::string, std::string>> names{
      {"\u00ad", "00ad"}, {"\u034f", "034f"}, {"\u061c", "061c"}, {"\u115f", "115f"},
      {"\u180e", "180e"}, {"\u200d", "200d"}, {"\u200f", "200f"}, {"\u2028", "2028"},
      {"\u2029", "2029"}, {"\u2066", "2066"}, {"\u2069", "2069"}, {"\u3164", "3164"},
      {"\ufe0f", "fe0f"}, {"\ufeff", "feff"}, {"\ufffb", "fffb"}};
  std::string expected;
  for (const auto& [name, number] : names) {
    kept.push_back(owner.publish(name, std::span(memory), access::read));
    expected += "\\u" + number + '\n';
  }
  EXPECT_EQ(run_tool({"ls", "-1", owner.url()}).out, expected);
}

TEST(List, TellsOfAFullDisk) {
  const ucx_server owner;
  expect_failure(run_tool({"ls", "--json", owner.url()}, command::output::full_disk), 9,
                 "No space left on device");
}

TEST_F(Catalogue, EndsQuietlyWhenNobodyReads) {
  const std::vector<std::vector<std::string>> commands{{"ls", owner_.url()},
                                                       {"ls", "--json", owner_.url()},
                                                       {"stat", file_.url()},
                                                       {"info", owner_.url()},
                                                       {"info", "--json"}};
  for (const command::output where : {command::output::broken, command::output::closed}) {
    for (const std::vector<std::string>& arguments : commands) {
      const command_result result = run_tool(arguments, where);
      EXPECT_EQ(result.code, 0);
      EXPECT_EQ(result.err, "");
    }
  }
}

TEST(Info, TellsVersionsWithoutAServer) {
  const command_result result = run_tool({"info"});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("ucxio       " + to_string(version()) + "\n"));
  EXPECT_THAT(result.out, HasSubstr("tcp/lo"));
}

}  // namespace
}  // namespace ucx::test
