// Options, JSON members and environment variables by the names that they had before 0.1.0 renamed
// them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"
#include "support/transports/ucx_server.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/server.hpp"

namespace ucx::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

struct renamed_option {
  std::string command;
  std::string before;
  std::string now;
};

const std::vector<renamed_option>& renamed_options() {
  static const std::vector<renamed_option> all{
      {"serve", "--most-open-files", "--max-open-files"},
      {"serve", "--most-open-files-of-one-client", "--max-open-files-per-client"},
      {"serve", "--most-writers", "--max-writers"},
      {"bench", "--lanes", "--connections"}};
  return all;
}

std::string warning(const std::string& before, const std::string& now) {
  return "ucxio: warning: " + before + " is now " + now + '\n';
}

TEST(OldNames, OfServeWorkAndAreWarnedOf) {
  command serving(
      tool_program(),
      {"serve", "--quiet", "--memory-store", "1K", "--writable", "--most-open-files-of-one-client",
       "2", "--most-open-files=3", "--most-writers", "1"},
      command::output::pipe);
  std::string url;
  while (!url.ends_with('\n')) {
    const std::string next = serving.read(1);
    ASSERT_FALSE(next.empty()) << serving.errors();
    url += next;
  }
  url.pop_back();
  {
    ofstream(url + "/one") << "text";
    const ofstream first(url + "/first");
    EXPECT_TRUE(first) << first.error_message();
    EXPECT_EQ(ofstream(url + "/second").error(), errc::too_many_writers);
    const ifstream reader(url + "/one");
    EXPECT_TRUE(reader) << reader.error_message();
    EXPECT_EQ(ifstream(url + "/one").error(), errc::too_many_client_files);
  }
  serving.send_signal(SIGTERM);
  const command_result result = serving.finish();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err,
            warning("--most-open-files", "--max-open-files") +
                warning("--most-open-files-of-one-client", "--max-open-files-per-client") +
                warning("--most-writers", "--max-writers"));
}

TEST(OldNames, OfOpenFilesLimitThoseOfAllClients) {
  const tool_server serving({"--memory-store", "1K", "--writable", "--most-open-files", "2",
                             "--max-open-files-per-client", "9"});
  ofstream(serving.url("one")) << "text";
  const ifstream first(serving.url("one"));
  const ifstream second(serving.url("one"));
  EXPECT_TRUE(second) << second.error_message();
  EXPECT_EQ(ifstream(serving.url("one")).error(), errc::too_many_store_files);
}

TEST(OldNames, OfBenchWorkAndAreWarnedOf) {
  std::string memory(mib, 'x');
  ucx_server owner;
  const publication shown = owner.publish("memory", std::as_bytes(std::span(memory)));
  const command_result result = run_tool(
      {"bench", shown.url(), "--seconds", "0.01", "--size", "64K", "--json", "--lanes", "1,2"});
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, warning("--lanes", "--connections"));
  const json told = json::parse(result.out, nullptr, false);
  ASSERT_EQ(told.at("read").size(), 2U);
  EXPECT_EQ(told.at("read")[0].at("connections"), 1);
  EXPECT_EQ(told.at("read")[1].at("connections"), 2);
  EXPECT_EQ(told.at("read")[1].at("lanes"), 2);
  EXPECT_EQ(told.at("read")[1].at("lanes_used"), told.at("read")[1].at("connections_used"));
  EXPECT_EQ(told.at("latency").at("least_us"), told.at("latency").at("min_us"));
  EXPECT_EQ(told.at("way"), told.at("transfer_method"));
}

TEST(OldNames, AreRefusedBesideTheNewOnes) {
  for (const renamed_option& each : renamed_options()) {
    for (const std::string value : {"1", "2"}) {
      const command_result result =
          run_tool({each.command, "ucx://127.0.0.1:1/x", each.now, "2", each.before, value});
      expect_failure(result, 2, each.before + ": it is now " + each.now + ", give only that");
      EXPECT_EQ(result.out, "");
    }
  }
}

TEST(OldNames, TakeOnlyTheValuesThatTheNewOnesTake) {
  for (const renamed_option& each : renamed_options()) {
    expect_failure(run_tool({each.command, "x", each.before + "=x"}), 2, each.now);
    expect_failure(run_tool({each.command, "x", each.before}), 2, each.before);
  }
}

TEST(OldNames, AreHiddenFromHelpManualAndCompletion) {
  std::string texts = run_tool({"man"}).out;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    texts += run_tool({"completion", shell}).out;
  }
  for (const renamed_option& each : renamed_options()) {
    const std::string help = run_tool({each.command, "--help"}).out;
    EXPECT_THAT(help, HasSubstr(each.now + ' '));
    EXPECT_THAT(help, Not(HasSubstr(each.before)));
    EXPECT_THAT(help, Not(HasSubstr("\n\n\n")));
    EXPECT_THAT(texts, HasSubstr(each.now + ' '));
    const std::string before = each.before.substr(2);
    EXPECT_THAT(texts, Not(HasSubstr(before)));  // fish has no dashes there
    std::string roff;
    for (const char letter : before) roff += letter == '-' ? "\\-" : std::string(1, letter);
    EXPECT_THAT(texts, Not(HasSubstr(roff)));
  }
}

/// Returns what `ucxio info` says of memory that could be mapped.
command_result info(const std::vector<std::string>& variables) {
  ucx_server owner;
  const publication shown = owner.allocate("memory", mib, access::read_write);
  std::vector<std::string> line(variables);
  for (const std::string& word : {tool_program(), std::string("info"), shown.url()}) {
    line.push_back(word);
  }
  return command("/usr/bin/env", line).finish();
}

TEST(OldNames, OfVariablesWorkAndAreWarnedOf) {
  const command_result before = info({"UCXIO_WAY=message", "UCXIO_LINGER=1"});
  EXPECT_EQ(before.code, 0);
  EXPECT_THAT(before.out, HasSubstr("\n  transfer    message: UCXIO_WAY says so\n"));
  EXPECT_EQ(before.err, warning("UCXIO_WAY", "UCXIO_TRANSFER_METHOD") +
                            warning("UCXIO_LINGER", "UCXIO_SHARED_IDLE_TIMEOUT"));
  const command_result both = info({"UCXIO_WAY=rma", "UCXIO_TRANSFER_METHOD=message"});
  EXPECT_EQ(both.code, 0);
  EXPECT_THAT(both.out, HasSubstr("\n  transfer    message: UCXIO_TRANSFER_METHOD says so\n"));
  EXPECT_EQ(both.err, "");
}

}  // namespace
}  // namespace ucx::test
