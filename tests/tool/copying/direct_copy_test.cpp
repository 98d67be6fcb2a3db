// `ucxio cp --direct`: one server fetches from another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;

/// A server that has files, and one that fetches them.
class DirectCopy : public ::testing::Test {
 protected:
  std::string from(const std::string& name) const { return owner_.url(name); }
  std::string to(const std::string& name) const { return fetcher_.url(name); }
  std::string made(const std::string& name) const { return (copies_ / name).string(); }

  static command_result copy(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"cp", "--direct"});
    return run_tool(arguments);
  }
  /// Expects that it went well, quietly.
  static void expect_copied(const std::vector<std::string>& arguments) {
    const command_result result = copy(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out, "");
  }
  /// Begins to copy "x" to "y", so slowly that things happen meanwhile; returns when some is there.
  std::unique_ptr<command> begin() {
    files_.make("x", whole_);
    auto running = std::make_unique<command>(
        tool_program(), std::vector<std::string>{"cp", "--direct", "--resume", "--bwlimit", "2M",
                                                 from("x"), to("y")});
    EXPECT_TRUE(soon([&] {
      std::error_code ec;
      const auto there = std::filesystem::file_size(made(".y.ucxio-part"), ec);
      return !ec && there >= 2 * mib;
    }));
    return running;
  }

  const std::string whole_ = pattern_text(16 * mib);
  const temporary_directory files_;
  const temporary_directory copies_;
  tool_server owner_{{"--store", (files_ / "").string()}};
  tool_server fetcher_{
      {"--store", (copies_ / "").string(), "--writable", "--fetch-from", "127.0.0.1"}};
};

TEST_F(DirectCopy, BringsEverySize) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, mib - 1, mib, mib + 1, 9 * mib + 3}) {
    const std::string all = pattern_text(size);
    files_.make("x", all);
    expect_copied({from("x"), to("sub/x")});
    EXPECT_TRUE(content_of(made("sub/x")) == all) << size;
    expect_copied({"--verify", "--sparse", "--parallel", "3", from("x"), to("again")});
    EXPECT_TRUE(content_of(made("again")) == all) << size;
  }
}

TEST_F(DirectCopy, BringsTrees) {
  std::filesystem::create_directories(files_ / "tree/a/b");
  files_.make("tree/one", "1");
  files_.make("tree/a/b/gr\xc3\xb6\xc3\x9f %", pattern_text(3 * mib));
  for (int i = 0; i < 300; ++i) files_.make("tree/a/f" + std::to_string(i), std::to_string(i));
  expect_copied({"-r", "--verify", from("tree"), to("new")});
  expect_copied({"-r", from("tree"), to("")});
  for (const std::string copied : {"new", "tree"}) {
    EXPECT_EQ(names_in(copies_ / (copied + "/a")).size(), 301U);
    EXPECT_EQ(content_of(made(copied + "/a/f299")), "299");
    EXPECT_TRUE(content_of(made(copied + "/a/b/gr\xc3\xb6\xc3\x9f %")) == pattern_text(3 * mib));
  }
  expect_failure(copy({from("tree"), to("third")}), 2, "-r");
}

TEST_F(DirectCopy, TellsWhatItLeavesOut) {
  std::filesystem::create_directories(files_ / "tree");
  for (int i = 0; i < 60; ++i) files_.make("tree/.f" + std::to_string(i) + ".ucxio-part", "left");
  files_.make("tree/one", "1");
  const command_result result = copy({"-r", from("tree"), to("new")});
  EXPECT_EQ(result.code, 11) << result.err;
  EXPECT_THAT(result.err, HasSubstr(".f59.ucxio-part: this is the name of an unfinished copy"));
  EXPECT_THAT(result.err, HasSubstr("60 of what was to be copied were not\n"));
  EXPECT_THAT(names_in(copies_ / "new"), ::testing::ElementsAre("one"));
}

TEST_F(DirectCopy, ShowsHowFarItIs) {
  files_.make("x", pattern_text(3 * mib));
  const command_result result = copy({"--progress", "json", from("x"), to("y")});
  EXPECT_EQ(result.code, 0) << result.err;
  const auto last = nlohmann::json::parse(result.err.substr(result.err.rfind("{\"bytes\"")));
  EXPECT_EQ(last["bytes"], 3 * mib);
  EXPECT_EQ(last["total_bytes"], 3 * mib);
  EXPECT_EQ(last["files"], 1);
  EXPECT_EQ(last["done"], true);
}

TEST_F(DirectCopy, GoesOnWhereItWasInterrupted) {
  const auto running = begin();
  running->send_signal(SIGINT);
  const command_result result = running->finish();
  EXPECT_EQ(result.signal, SIGINT);
  EXPECT_EQ(result.err, "ucxio: interrupted; --resume goes on with what is there\n");
  EXPECT_FALSE(std::filesystem::exists(made("y")));
  const std::string part = content_of(made(".y.ucxio-part"));
  EXPECT_LT(part.size(), whole_.size());
  EXPECT_TRUE(part == whole_.substr(0, part.size()));
  EXPECT_TRUE(soon([&] { return copy({"--resume", from("x"), to("y")}).code == 0; }));
  EXPECT_TRUE(content_of(made("y")) == whole_);
  EXPECT_FALSE(std::filesystem::exists(made(".y.ucxio-part")));
}

TEST_F(DirectCopy, EndsWithItsClient) {
  const auto running = begin();
  running->send_signal(SIGKILL);
  running->finish();
  EXPECT_TRUE(soon([&] { return run_tool({"rm", to(".y.ucxio-part")}).code == 0; }));
  expect_copied({from("x"), to("z")});
}

TEST_F(DirectCopy, FailsWhenTheOwnerIsKilled) {
  const auto running = begin();
  owner_.process().kill();
  expect_failure(running->finish(), lost, from("x"));
  EXPECT_TRUE(std::filesystem::exists(made(".y.ucxio-part")));
}

TEST_F(DirectCopy, FailsWhenTheFetcherIsKilled) {
  const auto running = begin();
  fetcher_.process().kill();
  expect_failure(running->finish(), lost, fetcher_.url());
}

TEST_F(DirectCopy, DoesNotKeepAServerThatIsToEnd) {
  const auto running = begin();
  fetcher_.process().send_signal(SIGTERM);
  EXPECT_EQ(fetcher_.process().wait(std::chrono::seconds(20)), 0);
  EXPECT_EQ(running->finish().code, lost);
}

TEST_F(DirectCopy, TellsWhatIsMissing) {
  files_.make("x", "1");
  expect_failure(copy({from("missing"), to("y")}), 3, "missing");
  expect_copied({from("x"), to("new/")});
  EXPECT_EQ(content_of(made("new/x")), "1");
  expect_failure(copy({"ucx://127.0.0.1:1/x", to("y")}), 4, "ucx://127.0.0.1:1");
  expect_failure(copy({from("x"), "ucx://127.0.0.1:1/x"}), 4, "ucx://127.0.0.1:1");
}

TEST_F(DirectCopy, IsRefusedByWhoMayNotFetch) {
  files_.make("x", "1");
  const temporary_directory other;
  const std::string store = (other / "").string();
  const std::string host = "127.0.0.1:";
  const std::string port = owner_.url().substr(owner_.url().rfind(':') + 1);
  const std::vector<std::vector<std::string>> refusing{
      {"--agent"}, {"--fetch-from", "localhost"}, {"--fetch-from", host + "1"}};
  for (std::vector<std::string> line : refusing) {
    line.insert(line.end(), {"--store", store, "--writable"});
    const tool_server server(line);
    expect_failure(copy({from("x"), server.url("y")}), 5, "serve --fetch-from 127.0.0.1");
    EXPECT_FALSE(std::filesystem::exists(other / "y"));
  }
  const std::vector<std::vector<std::string>> fetching{
      {"--fetch-from", "any"},
      {"--fetch-from", host + port},
      {"--fetch-from", "localhost", "--fetch-from", "127.0.0.1"}};
  for (std::vector<std::string> line : fetching) {
    line.insert(line.end(), {"--store", store, "--writable"});
    const tool_server server(line);
    expect_copied({from("x"), server.url("y")});
  }
  const tool_server reading({"--store", store, "--fetch-from", "any"});
  expect_failure(copy({from("x"), reading.url("z")}), 5, "z");
}

TEST_F(DirectCopy, NeedsAnAgent) {
  expect_failure(copy({from("x"), owner_.url("y")}), 1, "ucxio serve --agent");
  const tool_server introduces({"--pipes"});
  expect_failure(copy({"--timeout", "3", from("x"), introduces.url("y")}), 6,
                 "ucxio serve --agent");
}

TEST_F(DirectCopy, IsToldOfWrongArguments) {
  files_.make("x", "1");
  expect_failure(copy({from("x"), made("y")}), 2, "--direct");
  expect_failure(copy({made("x"), to("y")}), 2, "--direct");
  expect_failure(copy({"-L", from("x"), to("y")}), 2, "--dereference");
  expect_failure(run_tool({"serve", "--fetch-from", "a/b"}), 2, "--fetch-from");
  expect_failure(run_tool({"serve", "--fetch-from", "a:b:c"}), 2, "--fetch-from");
}

TEST_F(DirectCopy, ServesManyAtOnce) {
  // With long deadlines: they share two processors with other tests, and may be ten times as slow.
  std::vector<std::unique_ptr<command>> all;
  for (int i = 0; i < 24; ++i) {
    const std::string name = "f" + std::to_string(i);
    files_.make(name, name);
    all.push_back(std::make_unique<command>(
        tool_program(),
        std::vector<std::string>{"cp", "--direct", "--timeout", "100", from(name), to(name)}));
  }
  for (int i = 0; i < 24; ++i) {
    const command_result result =
        all[static_cast<std::size_t>(i)]->finish(std::chrono::seconds(110));
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(content_of(made("f" + std::to_string(i))), "f" + std::to_string(i));
  }
}

}  // namespace
}  // namespace ucx::test
