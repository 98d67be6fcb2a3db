// `ucxio pipe`: how fast, how far, and who waits for whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/tool/progress_objects.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;

class PipeFlow : public ::testing::Test {
 protected:
  std::string url() const { return server_.url("p"); }
  std::unique_ptr<command> receiver(command::output where,
                                    std::vector<std::string> more = {}) const {
    std::vector<std::string> line{"pipe", "receive", url()};
    line.insert(line.end(), more.begin(), more.end());
    return std::make_unique<command>(tool_program(), line, where);
  }
  /// Sends what a command prints; `options` are of `ucxio pipe send`.
  std::unique_ptr<command> sender(const std::string& source,
                                  const std::string& options = "") const {
    return std::make_unique<command>(
        "/bin/sh",
        std::vector<std::string>{"-c", source + " | \"$0\" pipe send " + options + " \"$1\"",
                                 tool_program(), url()});
  }

  const tool_server server_{{"--pipes"}};
};

TEST_F(PipeFlow, IsToldToPrograms) {
  const auto reads = receiver(command::output::kept, {"--progress", "json"});
  const command_result sent = sender("head -c 3000000 /dev/zero", "--progress json")->finish();
  const command_result came = reads->finish();
  EXPECT_EQ(came.out.size(), 3'000'000U);
  for (const command_result& each : {sent, came}) {
    EXPECT_EQ(each.code, 0) << each.err;
    const auto last = last_progress_in(each.err);
    EXPECT_EQ(last["bytes"], 3'000'000) << each.err;
    EXPECT_TRUE(last["total_bytes"].is_null()) << each.err;
    EXPECT_EQ(last["outcome"], "done") << each.err;
  }
}

TEST_F(PipeFlow, IsToldWhereItFails) {
  const auto reads = receiver(command::output::full_disk, {"--progress", "json"});
  const command_result sent = sender("yes", "--progress json")->finish();
  EXPECT_EQ(last_progress_in(reads->finish().err)["exit_code"], 9);
  EXPECT_EQ(sent.code, lost);
  EXPECT_EQ(last_progress_in(sent.err)["outcome"], "failed") << sent.err;
  EXPECT_EQ(last_progress_in(sent.err)["exit_code"], lost) << sent.err;
  EXPECT_THAT(sent.err, HasSubstr("; that end knows why"));
}

/// It can not be sooner than the limit lets it.
TEST_F(PipeFlow, IsAsSlowAsItIsTold) {
  for (const bool at_sender : {true, false}) {
    const std::vector<std::string> limit{"--bwlimit", "100K", "--progress", "json"};
    const auto reads =
        receiver(command::output::kept, at_sender ? std::vector<std::string>{} : limit);
    const command_result sent =
        sender("head -c 200000 /dev/zero", at_sender ? "--bwlimit 100K --progress json" : "")
            ->finish();
    const command_result came = reads->finish();
    EXPECT_EQ(sent.code, 0) << sent.err;
    EXPECT_EQ(came.out.size(), 200'000U);
    EXPECT_GT(last_progress_in(at_sender ? sent.err : came.err)["seconds"], 1.5);
  }
  for (const std::string end : {"send", "receive"}) {
    expect_failure(run_tool({"pipe", end, "--bwlimit", "nonsense", url()}), 2, "\"nonsense\"");
    expect_failure(run_tool({"pipe", end, "--bwlimit", "0", url()}), 2, "never end");
  }
}

/// Whoever reads behind the receiver may take all the time of the world: that is no silence.
TEST_F(PipeFlow, WaitsForAReceiverThatWaitsForItsOutput) {
  constexpr std::size_t size = 40'000'000;  // more than everything on the way holds
  const auto reads = receiver(command::output::pipe);
  const auto sends = sender("head -c " + std::to_string(size) + " /dev/zero");
  std::size_t count = reads->read(1).size();
  std::this_thread::sleep_for(std::chrono::seconds(6));  // a silent peer is lost after five
  EXPECT_EQ(sends->errors(), "");
  EXPECT_EQ(reads->errors(), "");
  const command_result came = reads->finish();
  count += came.out.size();
  EXPECT_EQ(came.code, 0) << came.err;
  EXPECT_EQ(count, size);
  EXPECT_EQ(sends->finish().code, 0);
}

TEST_F(PipeFlow, EndsQuietlyWithoutStandardOutput) {
  const auto reads = receiver(command::output::closed);
  const command_result sent = sender("yes")->finish();
  const command_result came = reads->finish();
  EXPECT_EQ(came.code, 0) << came.err;
  EXPECT_EQ(came.err, "");
  EXPECT_EQ(sent.code, lost) << sent.err;
  EXPECT_THAT(sent.err, HasSubstr("the reader left"));
}

TEST_F(PipeFlow, SaysOnceThatNobodyAnswers) {
  const temporary_directory folder;
  tool_server stopped({"--pipes"});
  stopped.process().stop();
  const command_result result = run_tool({"pipe", "receive", "--timeout", "0.5", stopped.url("p")});
  expect_failure(result, 6, "the deadline passed first");
  EXPECT_EQ(result.err.find("the deadline passed first"), result.err.rfind("the deadline passed"));
  stopped.process().resume();
}

}  // namespace
}  // namespace ucx::test
