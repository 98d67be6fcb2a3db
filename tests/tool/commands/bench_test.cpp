#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Measures briefly, and returns what is told as JSON.
json bench(const std::string& url, const std::vector<std::string>& more = {}) {
  std::vector<std::string> arguments{"bench", url, "--seconds", "0.01", "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const command_result result = run_tool(arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  return json::parse(result.out, nullptr, false);
}

std::vector<std::size_t> calls_of(const json& measured) {
  std::vector<std::size_t> sizes;
  for (const json& each : measured) {
    sizes.push_back(each.at("size"));
    EXPECT_GT(each.at("calls"), 0);
    EXPECT_GT(each.at("seconds"), 0);
    EXPECT_GT(each.at("gigabytes_per_second"), 0);
  }
  return sizes;
}

TEST(Bench, TellsPeopleWhatItMeasured) {
  const temporary_directory folder;
  const tool_server server({"x=" + folder.make("x", pattern_text(2 * mib)).string()});
  const command_result result = run_tool({"bench", server.url("x"), "--seconds", "0.01"});
  EXPECT_EQ(result.code, 0) << result.err;
  for (const std::string words :
       {"name        x (2097152 bytes)\n", "transfer    message: a file", "\nconnect ", "\nopen ",
        "\nlatency ", " us min, ", " us p99 (", " GB/s, 4096 bytes per call\n",
        " GB/s, 65536 bytes per call\n", " GB/s, 1048576 bytes per call\n"}) {
    EXPECT_THAT(result.out, HasSubstr(words));
  }
  EXPECT_THAT(result.out, Not(HasSubstr("\nwrite ")));
}

TEST(Bench, TellsProgramsWhatItMeasured) {
  const temporary_directory folder;
  const tool_server server({"x=" + folder.make("x", pattern_text(mib)).string()});
  const json told = bench(server.url("x"));
  EXPECT_EQ(told.at("name"), "x");
  EXPECT_EQ(told.at("size"), mib);
  EXPECT_EQ(told.at("url"), server.url("x"));
  EXPECT_EQ(told.at("transfer_method"), "message");
  EXPECT_GT(told.at("connect_ms"), 0);
  EXPECT_GT(told.at("open_ms"), 0);
  const json& latency = told.at("latency");
  EXPECT_EQ(latency.at("bytes"), 8);
  EXPECT_GT(latency.at("reads"), 0);
  EXPECT_LE(latency.at("min_us"), latency.at("median_us"));
  EXPECT_LE(latency.at("median_us"), latency.at("p99_us"));
  EXPECT_THAT(calls_of(told.at("read")), ElementsAre(4096, 65536, mib));
  EXPECT_TRUE(told.at("write").empty());
}

TEST(Bench, MeasuresTheSizesThatAreAskedFor) {
  std::string memory = pattern_text(mib + 1);
  ucx_server owner;
  const publication shown = owner.publish("memory", std::as_bytes(std::span(memory)));
  const json told = bench(shown.url(), {"--size", "1", "--size", "10000", "--size", "1MiB"});
  EXPECT_THAT(calls_of(told.at("read")), ElementsAre(1, 10000, mib));
}

TEST(Bench, MeasuresEachNumberOfConnections) {
  const temporary_directory folder;
  const tool_server server({"--workers", "2", "x=" + folder.make("x", pattern_text(mib)).string()});
  const json told =
      bench(server.url("x"), {"--size", "64K", "--size", "1M", "--connections", "1,3"});
  std::vector<std::size_t> asked;
  for (const json& each : told.at("read")) {
    asked.push_back(each.at("connections"));
    EXPECT_EQ(each.at("connections_used"), each.at("connections"));
  }
  EXPECT_THAT(asked, ElementsAre(1, 1, 3, 3));
  const command_result table = run_tool(
      {"bench", server.url("x"), "--seconds", "0.01", "--size", "64K", "--connections", "1,3"});
  EXPECT_THAT(table.out, HasSubstr(" GB/s, 65536 bytes per call\n"));
  EXPECT_THAT(table.out, HasSubstr(" GB/s, 65536 bytes per call, 3 connections\n"));
}

TEST(Bench, TellsWhereThereAreFewerConnections) {
  ucx_server owner;
  const publication shown = owner.allocate("memory", mib, access::read_write);
  const json told = bench(shown.url(), {"--write", "--size", "64K", "--connections", "2"});
  ASSERT_EQ(told.at("read").size(), 1U);
  EXPECT_EQ(told.at("read")[0].at("connections"), 2);
  EXPECT_EQ(told.at("read")[0].at("connections_used"), 1) << "it is mapped";
  ASSERT_EQ(told.at("write").size(), 1U);
  EXPECT_EQ(told.at("write")[0].at("connections"), 1) << "several are for reading";
  const command_result table =
      run_tool({"bench", shown.url(), "--seconds", "0.01", "--size", "64K", "--connections", "2"});
  EXPECT_THAT(table.out, HasSubstr(" bytes per call, 1 of 2 connections\n"));
}

TEST(Bench, MeasuresWhatIsSmall) {
  std::string memory = "abc";
  ucx_server owner;
  const publication shown = owner.publish("memory", std::as_bytes(std::span(memory)));
  const json told = bench(shown.url());
  EXPECT_EQ(told.at("latency").at("bytes"), 3);
  EXPECT_THAT(calls_of(told.at("read")), ElementsAre(3));
}

TEST(Bench, LeavesWhatItWritesAsItWas) {
  const std::string before = pattern_text(mib + 12345);
  std::string memory = before;
  ucx_server owner;
  const publication shown =
      owner.publish("memory", std::as_writable_bytes(std::span(memory)), access::read_write);
  const json told = bench(shown.url(), {"--write", "--size", "4K", "--size", "999999"});
  EXPECT_THAT(calls_of(told.at("write")), ElementsAre(4096, 999999));
  EXPECT_TRUE(memory == before);
}

TEST(Bench, MeasuresMemoryThatIsMapped) {
  ucx_server owner;
  const publication shown = owner.allocate("memory", mib, access::read_write);
  const json told = bench(shown.url(), {"--write"});
  EXPECT_EQ(calls_of(told.at("read")).size(), 3U);
  EXPECT_EQ(calls_of(told.at("write")).size(), 3U);
}

TEST(Bench, DoesNotWriteWhatIsForReadingOnly) {
  std::string memory(16, 'x');
  ucx_server owner;
  const publication shown = owner.publish("memory", std::as_bytes(std::span(memory)));
  expect_failure(run_tool({"bench", shown.url(), "--write"}), 5, "\"memory\"");
}

TEST(Bench, RefusesWhatCanNotBeMeasured) {
  const temporary_directory folder;
  const tool_server server({"empty=" + folder.make("empty", "").string(),
                            "small=" + folder.make("small", "12345").string()});
  expect_failure(run_tool({"bench", server.url("empty")}), 2, "is empty");
  expect_failure(run_tool({"bench", server.url("small"), "--size", "6"}), 2, "--size 6");
  expect_failure(run_tool({"bench", server.url("none")}), 3, "\"none\"");
}

TEST(Bench, RefusesArgumentsThatAreNone) {
  const std::string url = "ucx://127.0.0.1:1/x";
  for (const std::string wrong : {"0", "-1", "nan", "1e9", "soon"}) {
    expect_failure(run_tool({"bench", url, "--seconds=" + wrong}), 2, "--seconds");
  }
  for (const std::string wrong : {"0", "-1", "2G", "x", "010"}) {
    expect_failure(run_tool({"bench", url, "--size=" + wrong}), 2, "--size");
  }
  for (const std::string wrong : {"0", "65", "-1", "1,0", "x"}) {
    expect_failure(run_tool({"bench", url, "--connections=" + wrong}), 2, "--connections");
  }
}

TEST(Bench, TellsThatTheNameWasWithdrawn) {
  std::string memory(mib, 'x');
  ucx_server owner;
  publication shown = owner.publish("gone", std::as_bytes(std::span(memory)));
  const std::string url = shown.url();
  command bench(tool_program(), {"bench", url, "--seconds", "60"});
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (owner.statistics().opens == 0 && std::chrono::steady_clock::now() < until) {
    std::this_thread::yield();
  }
  shown.close();
  expect_failure(bench.finish(), 7, url);
}

TEST(Bench, TimesOutWhereTheServerIsStopped) {
  const temporary_directory folder;
  tool_server server({"x=" + folder.make("x", "12345").string()});
  server.process().stop();
  expect_failure(run_tool({"bench", "--timeout", "0.5", server.url("x")}), 6, server.url());
  server.process().resume();
}

}  // namespace
}  // namespace ucx::test
