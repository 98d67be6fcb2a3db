// `ucxio pipe`: one end's input is the other end's output, or both say why not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr int partial = 11;

/// What the server speaks by which the ends meet, and the ends with each other.
enum class pipe_by { its_default, ucx, address_file };

/// A server that introduces, and ends of pipes that meet there.
class PipeTool : public testing::TestWithParam<pipe_by> {
 protected:
  std::string name() const { return server_.url("checkpoint"); }
  std::vector<std::string> receive() const { return {"pipe", "receive", name()}; }
  std::vector<std::string> send() const { return {"pipe", "send", name()}; }

  /// Runs a line of the shell, in which $UCXIO is the tool and $URL the pipe.
  std::unique_ptr<command> shell(const std::string& line,
                                 command::output where = command::output::kept) const {
    const std::string all = "UCXIO=" + tool_program() + " URL=" + name() + "; " + line;
    return std::make_unique<command>("/bin/sh", std::vector<std::string>{"-c", all}, where);
  }
  std::unique_ptr<command> receiver(command::output where = command::output::kept) const {
    return std::make_unique<command>(tool_program(), receive(), where);
  }
  static int code_of(child_process& ended) {
    const std::optional<int> status = ended.wait(40s);
    return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
  }

  std::vector<std::string> place() const {
    switch (GetParam()) {
      case pipe_by::its_default:
        return {"--pipes"};
      case pipe_by::ucx:
        return {"--pipes", "--ucx"};
      case pipe_by::address_file:
        break;
    }
    return {"--pipes", "--address-file", (nearby_ / "address").string()};
  }

  const temporary_directory nearby_;
  tool_server server_{place()};
};

TEST_P(PipeTool, CarriesTheInputToTheOutput) {
  const auto reads = receiver();
  const command_result sent = shell("printf 'one\\ntwo' | $UCXIO pipe send $URL")->finish();
  const command_result came = reads->finish();
  EXPECT_EQ(sent.code, 0) << sent.err;
  EXPECT_EQ(came.code, 0) << came.err;
  EXPECT_EQ(came.out, "one\ntwo");
  EXPECT_EQ(sent.err, "");
  EXPECT_EQ(came.err, "");
}

TEST_P(PipeTool, CarriesMoreThanItsWindow) {
  const auto reads = shell("$UCXIO pipe receive $URL --window 64K | md5sum");
  const command_result sent = shell("head -c 20000000 /dev/zero | $UCXIO pipe send $URL")->finish();
  EXPECT_EQ(sent.code, 0) << sent.err;
  EXPECT_THAT(reads->finish().out, StartsWith("10e4462c9d0b08e7f0b304c4fbfeafa3"));
}

TEST_P(PipeTool, CarriesNothingToo) {
  const auto reads = receiver();
  EXPECT_EQ(shell("$UCXIO pipe send $URL </dev/null")->finish().code, 0);
  const command_result came = reads->finish();
  EXPECT_EQ(came.code, 0) << came.err;
  EXPECT_EQ(came.out, "");
}

TEST_P(PipeTool, SendsTheFirstByteAtOnce) {
  const auto reads = receiver(command::output::pipe);
  child_process sends(tool_program(), send());
  for (const std::string line : {"first", "second"}) {
    sends.write_line(line);
    EXPECT_EQ(reads->read(line.size() + 1), line + '\n');
  }
}

TEST_P(PipeTool, GivesEveryReaderEverything) {
  std::vector<std::unique_ptr<command>> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(receiver());
  const command_result sent = shell("seq 100000 | $UCXIO pipe send --readers 3 $URL")->finish();
  EXPECT_EQ(sent.code, 0) << sent.err;
  for (const auto& each : readers) {
    const command_result came = each->finish();
    EXPECT_EQ(came.code, 0) << came.err;
    EXPECT_EQ(came.out.size(), 588'895U);
  }
}

/// A broadcast to two readers. The writer says "begin", and the rest when there is a file "go".
class PipeBroadcast : public PipeTool {
 protected:
  std::unique_ptr<command> start(const std::string& options) {
    kept_ = shell("exec $UCXIO pipe receive $URL >" + file("kept"));
    lost_ = shell("exec $UCXIO pipe receive $URL >" + file("lost"));
    auto sends = shell("(echo begin; until [ -e " + file("go") +
                       " ]; do sleep 0.05; done; seq 3000000) | "
                       "$UCXIO pipe send --readers 2 " +
                       options + " $URL");
    for (const std::string each : {"kept", "lost"}) {
      EXPECT_TRUE(soon([&] { return content_of(folder_ / each) == "begin\n"; })) << each;
    }
    return sends;
  }
  void go_on() const { folder_.make("go", ""); }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  static constexpr std::size_t whole = 22'888'902;  // more than a window

  const temporary_directory folder_;
  std::unique_ptr<command> kept_;
  std::unique_ptr<command> lost_;
};

TEST_P(PipeBroadcast, FailsAllWhenAReaderIsKilled) {
  const auto sends = start("");
  lost_->send_signal(SIGKILL);
  go_on();
  const command_result sent = sends->finish();
  EXPECT_EQ(sent.code, lost) << sent.err;
  EXPECT_THAT(sent.err, HasSubstr("the reader was lost"));
  const command_result came = kept_->finish();
  EXPECT_EQ(came.code, lost) << came.err;
  EXPECT_LT(std::filesystem::file_size(folder_ / "kept"), whole);
}

TEST_P(PipeBroadcast, DropsAReaderThatIsKilledWhereItMay) {
  const auto sends = start("--drop-slow");
  lost_->send_signal(SIGKILL);
  go_on();
  const command_result sent = sends->finish();
  EXPECT_EQ(sent.code, partial) << sent.err;
  EXPECT_THAT(sent.err, HasSubstr("ucxio: 1 of 2 readers was dropped\n"));
  const command_result came = kept_->finish();
  EXPECT_EQ(came.code, 0) << came.err;
  EXPECT_EQ(std::filesystem::file_size(folder_ / "kept"), whole);
}

TEST_P(PipeBroadcast, DropsAReaderThatHoldsUpTheOthersWhereItMay) {
  const auto sends = start("--drop-slow");
  lost_->send_signal(SIGSTOP);
  go_on();
  const command_result sent = sends->finish(60s);
  EXPECT_EQ(sent.code, partial) << sent.err;
  EXPECT_THAT(sent.err, HasSubstr("ucxio: 1 of 2 readers was dropped\n"));
  const command_result came = kept_->finish();
  EXPECT_EQ(came.code, 0) << came.err;
  EXPECT_EQ(std::filesystem::file_size(folder_ / "kept"), whole);
  lost_->send_signal(SIGCONT);
  const command_result dropped = lost_->finish(60s);
  EXPECT_EQ(dropped.code, lost) << dropped.err;
  EXPECT_LT(std::filesystem::file_size(folder_ / "lost"), whole);
}

TEST_P(PipeBroadcast, FailsWhereEveryReaderWasDropped) {
  const auto sends = start("--drop-slow");
  kept_->send_signal(SIGKILL);
  lost_->send_signal(SIGKILL);
  go_on();
  EXPECT_EQ(sends->finish().code, lost);
}

TEST_P(PipeTool, ReadsEveryWriter) {
  const auto reads = shell("$UCXIO pipe receive --writers 2 $URL | sort | tr -d '\\n'");
  const auto first = shell("echo a | $UCXIO pipe send $URL");
  const auto second = shell("echo b | $UCXIO pipe send $URL");
  EXPECT_EQ(first->finish().code, 0);
  EXPECT_EQ(second->finish().code, 0);
  EXPECT_EQ(reads->finish().out, "ab");
}

/// An end that listens, with these options, and one that does what that says.
command_result pipe_alone(const std::string& listens, const std::string& options,
                          std::string& said) {
  const temporary_directory folder;
  const std::string told = folder / "told";
  const std::string tool = tool_program();
  const std::string input = "echo over | ";
  const std::string there =
      (listens == "send" ? input : "") + tool + " pipe " + listens + ' ' + options;
  const std::string here = (listens == "send" ? "" : input) + "$(sed -n 's|.*: ucxio pipe|" + tool +
                           " pipe|p' " + told + ')';
  const std::string line = there + " 2>" + told + " & until grep -qs :// " + told +
                           " || ! kill -0 $!; do sleep 0.05; done; " + here + "; wait";
  const command_result both = command("/bin/sh", {"-c", line}).finish();
  std::ifstream words(told);
  std::getline(words, said);
  return both;
}

/// Without a server either end may listen, and says what to call at the other.
TEST(PipeToolAlone, ListensAndSaysWhatToCall) {
  const std::vector<std::pair<std::string, std::string>> ways{{"--ucx", "ucx://127.0.0.1:"},
                                                              {"--socket", "ucx+tcp://127.0.0.1:"},
                                                              {"--unix", "ucx+unix:///"}};
  for (const auto& [options, url] : ways) {
    for (const std::string listens : {"receive", "send"}) {
      std::string said;
      const command_result both = pipe_alone(listens, options, said);
      EXPECT_EQ(both.code, 0) << both.err;
      EXPECT_EQ(both.out, "over\n") << options << ' ' << said;
      const std::string calls = listens == "send" ? "receive" : "send";
      EXPECT_THAT(said,
                  StartsWith("ucxio: waiting; at the other end: ucxio pipe " + calls + ' ' + url));
    }
  }
}

TEST(PipeToolAlone, ListensByItsOwnChoice) {
  for (const std::string listens : {"receive", "send"}) {
    std::string said;
    const command_result both = pipe_alone(listens, "", said);
    EXPECT_EQ(both.code, 0) << both.err;
    EXPECT_EQ(both.out, "over\n") << said;
    EXPECT_THAT(said, Not(HasSubstr("ucx://")));
  }
}

TEST_P(PipeTool, FailsTheReaderWhenTheWriterIsKilled) {
  for (const auto after : {0ms, 20ms, 200ms}) {
    const auto reads = receiver(command::output::pipe);
    child_process sends(tool_program(), send());
    sends.write_line("begin");
    ASSERT_EQ(reads->read(6), "begin\n");
    sends.write_line(std::string(100'000, 'x'));
    std::this_thread::sleep_for(after);
    sends.kill();
    const command_result came = reads->finish();
    EXPECT_EQ(came.code, lost) << came.err;
    EXPECT_THAT(came.err, HasSubstr("the writer was lost"));
  }
}

TEST_P(PipeTool, FailsTheReaderWhenTheWriterFallsSilent) {
  const auto reads = receiver(command::output::pipe);
  child_process sends(tool_program(), send());
  sends.write_line("begin");
  ASSERT_EQ(reads->read(6), "begin\n");
  sends.stop();
  const command_result came = reads->finish();
  EXPECT_EQ(came.code, lost) << came.err;
  EXPECT_THAT(came.err, HasSubstr("6 bytes"));
}

TEST_P(PipeTool, FailsTheWriterWhenTheReaderIsKilled) {
  for (const bool busy : {true, false}) {
    child_process reads(tool_program(), receive());
    const auto busy_writer = busy ? shell("yes | $UCXIO pipe send $URL") : nullptr;
    std::optional<child_process> idle_writer;
    if (!busy) {
      idle_writer.emplace(tool_program(), send());
      idle_writer->write_line("y");
    }
    ASSERT_EQ(reads.read_line(30s), "y");
    reads.kill();
    if (busy) {
      const command_result sent = busy_writer->finish();
      EXPECT_EQ(sent.code, lost) << sent.err;
      EXPECT_THAT(sent.err, HasSubstr("the reader was lost"));
    } else {
      EXPECT_EQ(code_of(*idle_writer), lost);  // although its input says nothing
    }
  }
}

TEST_P(PipeTool, FailsTheWriterWhenTheReaderFallsSilent) {
  child_process reads(tool_program(), receive());
  const auto sends = shell("yes | $UCXIO pipe send $URL");
  ASSERT_EQ(reads.read_line(30s), "y");
  reads.stop();
  const command_result sent = sends->finish(60s);
  EXPECT_EQ(sent.code, lost) << sent.err;
  EXPECT_THAT(sent.err, HasSubstr("having taken"));
}

TEST_P(PipeTool, EndsQuietlyWhenNobodyReadsItsOutput) {
  const auto reads = receiver(command::output::broken);
  const command_result sent = shell("yes | $UCXIO pipe send $URL")->finish();
  const command_result came = reads->finish();
  EXPECT_EQ(came.code, 0) << came.err;
  EXPECT_EQ(came.err, "");
  EXPECT_EQ(sent.code, lost) << sent.err;
  EXPECT_THAT(sent.err, HasSubstr("the reader left"));
}

TEST_P(PipeTool, FailsBothWhenTheDiskIsFull) {
  const auto reads = receiver(command::output::full_disk);
  const command_result sent = shell("yes | $UCXIO pipe send $URL")->finish();
  EXPECT_EQ(reads->finish().code, 9);
  EXPECT_EQ(sent.code, lost) << sent.err;
}

TEST_P(PipeTool, SurvivesTheServer) {
  const auto reads = receiver(command::output::pipe);
  child_process sends(tool_program(), send());
  sends.write_line("begin");
  ASSERT_EQ(reads->read(6), "begin\n");
  server_.process().kill();
  sends.write_line("goes on");
  EXPECT_EQ(reads->read(8), "goes on\n");
}

TEST_P(PipeTool, SaysWhoDidNotCome) {
  expect_failure(run_tool({"pipe", "receive", name(), "--timeout", "3"}), 6, "no writer came");
  expect_failure(run_tool({"pipe", "send", name(), "--timeout", "3"}), 6, "no reader came");
}

TEST(PipeToolAlone, SaysThatAServerTakesNoPipes) {
  const tool_server plain({});
  expect_failure(run_tool({"pipe", "receive", plain.url("x")}), 1, "takes no pipes");
}

TEST(PipeToolAlone, IsToldOfWrongArguments) {
  const std::vector<std::vector<std::string>> wrong{
      {"pipe"},
      {"pipe", "shove"},
      {"pipe", "send", "/tmp/x"},
      {"pipe", "send", "ucx://127.0.0.1:1"},
      {"pipe", "send", "ucx://127.0.0.1:1/x", "--bind", "127.0.0.1:0"},
      {"pipe", "send", "ucx://127.0.0.1:1/x", "--ucx"},
      {"pipe", "send", "ucx://127.0.0.1:1/x", "--insecure"},
      {"pipe", "send", "--ucx", "--socket"},
      {"pipe", "send", "--ucx", "--token-file", "/dev/null"},
      {"pipe", "receive", "--socket", "--token-file", "/dev/null"},
      {"pipe", "send", "ucx://127.0.0.1:1/x", "--readers", "0"},
      {"pipe", "send", "ucx://127.0.0.1:1/x", "--writers", "2"},
      {"pipe", "receive", "ucx://127.0.0.1:1/x", "--writers", "many"},
      {"pipe", "receive", "ucx://127.0.0.1:1/x", "--window", "1"},
      {"pipe", "receive", "ucx://127.0.0.1:1/x", "--window", "nonsense"},
  };
  for (const std::vector<std::string>& arguments : wrong) {
    const command_result result = run_tool(arguments);
    expect_failure(result, 2, "");
    EXPECT_EQ(result.out, "");
  }
}

/// As those of `ucxio serve`, with its words.
TEST(PipeToolAlone, IsToldOfWrongPlacesAsServeIs) {
  const std::vector<std::pair<std::vector<std::string>, int>> wrong{
      {{"--ucx", "--bind", "0.0.0.0:0"}, 5},
      {{"--socket", "--bind", "0.0.0.0:0"}, 5},
      {{"--insecure"}, 2},
      {{"--bind", "nonsense"}, 2},
      {{"--unix", "--bind", "1.2.3.4:5"}, 2},
      {{"--peer-user", "0"}, 2},
  };
  for (const auto& [options, code] : wrong) {
    std::vector<std::string> serve{"serve"};
    std::vector<std::string> pipe{"pipe", "receive"};
    serve.insert(serve.end(), options.begin(), options.end());
    pipe.insert(pipe.end(), options.begin(), options.end());
    const command_result refused = run_tool(pipe);
    expect_failure(refused, code, "");
    EXPECT_EQ(refused.err, run_tool(serve).err);
  }
}

const auto each_way = testing::Values(pipe_by::its_default, pipe_by::ucx, pipe_by::address_file);

std::string name_of_place(const testing::TestParamInfo<pipe_by>& chosen) {
  if (chosen.param == pipe_by::address_file) return "without_ip";
  return chosen.param == pipe_by::ucx ? "by_ucx" : "by_default";
}

INSTANTIATE_TEST_SUITE_P(, PipeTool, each_way, name_of_place);
INSTANTIATE_TEST_SUITE_P(, PipeBroadcast, each_way, name_of_place);

}  // namespace
}  // namespace ucx::test
