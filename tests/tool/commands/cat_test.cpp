#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
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

using output = command::output;
using ::testing::HasSubstr;

constexpr std::size_t large = 64 * mib;

/// Returns the first bytes of a content in which no two places look alike.
std::string_view pattern(std::size_t size) {
  static const std::string made = pattern_text(large);
  return std::string_view(made).substr(0, size);
}

/// A server with a file that is larger than what is under way at any time.
class CatInTheMiddle : public ::testing::Test {
 protected:
  CatInTheMiddle()
      : path_(folder_.make("large", std::string(pattern(large)))),
        server_({"large=" + path_.string()}) {}

  /// Begins to read; from then on the program waits for whoever reads its output.
  std::unique_ptr<command> begin(const std::string& timeout = "30") {
    auto cat = std::make_unique<command>(
        tool_program(), std::vector<std::string>{"cat", "--timeout", timeout, server_.url("large")},
        output::pipe);
    begun_ = cat->read(2 * mib);
    return cat;
  }

  /// Expects that it failed with `code`, after it wrote some of the file and nothing else.
  void expect_part(const command_result& result, int code, const std::string& words) {
    const std::string part = begun_ + result.out;
    EXPECT_LT(part.size(), large);
    EXPECT_TRUE(part == pattern(part.size()));
    expect_failure(result, code, words);
    EXPECT_THAT(result.err, HasSubstr(server_.url("large")));
  }

  temporary_directory folder_;
  std::filesystem::path path_;
  tool_server server_;
  std::string begun_;
};

TEST_F(CatInTheMiddle, IsWholeWhenNothingHappens) {
  const auto cat = begin();
  const command_result result = cat->finish();
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_TRUE(begun_ + result.out == pattern(large));
}

TEST_F(CatInTheMiddle, IsTheSameWhenItIsVerified) {
  const command_result result = run_tool({"cat", "--verify", server_.url("large")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_TRUE(result.out == pattern(large));
}

TEST_F(CatInTheMiddle, TellsOfALostConnectionWhenTheServerIsKilled) {
  const auto cat = begin();
  server_.process().kill();
  expect_part(cat->finish(), 7, "");
}

TEST_F(CatInTheMiddle, TellsOfALostConnectionWhenTheServerEnds) {
  const auto cat = begin();
  server_.process().send_signal(SIGTERM);
  EXPECT_EQ(server_.process().wait(std::chrono::seconds(30)), 0);
  expect_part(cat->finish(), 7, "");
}

TEST_F(CatInTheMiddle, TimesOutWhenTheServerIsStopped) {
  const auto cat = begin("2");
  server_.process().stop();
  expect_part(cat->finish(), 6, "the deadline passed");
}

TEST_F(CatInTheMiddle, TellsOfAFileThatWasCutOff) {
  const auto cat = begin();
  std::filesystem::resize_file(path_, mib);
  expect_part(cat->finish(), 8, "");
}

TEST_F(CatInTheMiddle, EndsQuietlyWhenItsReaderHasEnough) {
  const auto cat = begin();
  cat->close_pipe();
  const command_result result = cat->finish();
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
}

TEST_F(CatInTheMiddle, IsEndedBySignals) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const auto cat = begin();
    cat->send_signal(signal);
    EXPECT_EQ(cat->finish().signal, signal);
  }
  // The server goes on.
  EXPECT_EQ(run_tool({"cat", server_.url("large"), "--length", "3"}).out, pattern(3));
}

TEST(Cat, ReadsWhatOffsetAndLengthSay) {
  const temporary_directory folder;
  const std::string content(pattern(2 * mib + 5));
  const tool_server server({"x=" + folder.make("x", content).string()});
  struct {
    std::string offset, length;
    std::size_t from, count;
  } const cases[] = {
      {"0", "0", 0, 0},
      {"0", "1", 0, 1},
      {"1", "1", 1, 1},
      {"0", "1MiB", 0, mib},
      {"1M", "1M", mib, mib},
      {"4K", "1048577", 4096, mib + 1},
      {"2097156", "1", 2 * mib + 4, 1},
      {"2097157", "1", 2 * mib + 5, 0},
      {"2M", "1G", 2 * mib, 5},
      {"3", "2 mb", 3, 2 * mib},
      {"0", "999999999999999999", 0, 2 * mib + 5},
  };
  for (const auto& each : cases) {
    const command_result result =
        run_tool({"cat", server.url("x"), "--offset", each.offset, "--length", each.length});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_TRUE(result.out == content.substr(each.from, each.count))
        << each.offset << ' ' << each.length << ": " << result.out.size() << " bytes";
  }
}

TEST(Cat, SaysWhatADirectoryIs) {
  const temporary_directory folder;
  std::filesystem::create_directory(folder / "sub");
  const tool_server server({"--store", (folder / "").string()});
  expect_failure(run_tool({"cat", server.url("sub")}), 2,
                 server.url("sub") + " is a directory: `ucxio ls " + server.url("sub") + "` lists");
}

TEST(Cat, SaysThatAPipeIsNoFile) {
  const temporary_directory folder;
  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  const tool_server server({"--store", "s=" + (folder / "").string()});
  expect_failure(run_tool({"cat", server.url("s/pipe")}), 1, "no regular file");
  expect_failure(run_tool({"stat", server.url("s/pipe")}), 1, "neither a file nor a directory");
  for (const char* command : {"cp", "hash"}) {
    std::vector<std::string> arguments{command, server.url("s/pipe")};
    if (arguments.front() == "cp") arguments.push_back((folder / "copy").string());
    const command_result refused = run_tool(arguments);
    EXPECT_NE(refused.code, 0) << command;
    EXPECT_THAT(refused.err, testing::AnyOf(HasSubstr("no regular file"),
                                            HasSubstr("neither a file nor a directory")))
        << command;
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "copy"));
}

TEST(Cat, SaysWhichVariableOfTheEnvironmentIsWrong) {
  const temporary_directory folder;
  const tool_server server({folder.make("x", "1")});
  const command_result result =
      command("/usr/bin/env", {"UCXIO_TRANSFER_METHOD=zzz", tool_program(), "cat", server.url("x")})
          .finish();
  expect_failure(result, 1, "UCXIO_TRANSFER_METHOD is \"zzz\"");
  const command_result refused =
      command("/usr/bin/env", {"UCXIO_TRANSFER_METHOD=cma", tool_program(), "cat", server.url("x")})
          .finish();
  expect_failure(refused, 1, "UCXIO_TRANSFER_METHOD=cma: ");
}

TEST(Cat, RefusesAnOffsetBehindTheEnd) {
  const temporary_directory folder;
  const tool_server server({"x=" + folder.make("x", "12345").string()});
  expect_failure(run_tool({"cat", server.url("x"), "--offset", "6"}), 2, "offset 6");
}

TEST(Cat, RefusesSizesThatAreNone) {
  for (const std::string wrong :
       {"-1", "+1", "010", "0x10", "1.5", "K", "1Q", "", "1e3", "99999999999999999999", "17E"}) {
    expect_failure(run_tool({"cat", "ucx://127.0.0.1:1/x", "--offset=" + wrong}), 2, "--offset");
  }
}

TEST(Cat, ReadsAnEmptyFile) {
  const temporary_directory folder;
  const tool_server server({"x=" + folder.make("x", "").string()});
  const command_result result = run_tool({"cat", server.url("x")});
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_EQ(result.out, "");
}

TEST(Cat, ReadsSeveralInTheirOrder) {
  const temporary_directory folder;
  const tool_server first({"a=" + folder.make("a", "1").string()});
  const tool_server second({"b=" + folder.make("b", "2").string()});
  EXPECT_EQ(run_tool({"cat", second.url("b"), first.url("a"), second.url("b")}).out, "212");
}

TEST(Cat, WritesNothingWhenOneOfThemIsNotThere) {
  const temporary_directory folder;
  const tool_server server({"a=" + folder.make("a", "1").string()});
  const command_result result = run_tool({"cat", server.url("a"), server.url("b")});
  EXPECT_EQ(result.out, "");
  expect_failure(result, 3, "\"b\"");
  EXPECT_THAT(result.err, HasSubstr(server.url()));
}

TEST(Cat, ReadsNamesOfAllKinds) {
  const temporary_directory folder;
  const std::string path = folder.make("x", "content");
  const tool_server server({"a b=" + path, "100%=" + path,
                            "gr\xc3\xb6\xc3\x9f"
                            "e/\xe2\x82\xac=" +
                                path,
                            "?#&[]=" + path});
  for (const std::string name :
       {"a%20b", "100%25", "gr%C3%B6%c3%9fe/%E2%82%AC", "%3F%23%26%5B%5D"}) {
    const command_result result = run_tool({"cat", server.url(name)});
    EXPECT_EQ(result.out, "content") << name << ": " << result.err;
  }
}

TEST(Cat, EndsQuietlyWithoutStandardOutput) {
  const temporary_directory folder;
  const tool_server server({"x=" + folder.make("x", "12345").string()});
  const command_result result = run_tool({"cat", server.url("x")}, output::closed);
  EXPECT_EQ(result.code, 0);
  EXPECT_EQ(result.err, "");
}

TEST(Cat, TellsOfAFullDisk) {
  const temporary_directory folder;
  const tool_server server({"x=" + folder.make("x", "12345").string()});
  expect_failure(run_tool({"cat", server.url("x")}, output::full_disk), 9,
                 "No space left on device");
}

TEST(Cat, ReadsMemoryOfAnotherProcess) {
  std::string memory(pattern(mib + 1));
  ucx_server owner;
  const publication shown = owner.publish("memory", std::as_bytes(std::span(memory)));
  EXPECT_TRUE(run_tool({"cat", shown.url()}).out == memory);
}

TEST(Cat, IsRefusedWhatIsForWritingOnly) {
  std::string memory(16, 'x');
  ucx_server owner;
  const publication kept =
      owner.publish("kept", std::as_writable_bytes(std::span(memory)), access::write);
  expect_failure(run_tool({"cat", kept.url()}), 5, "\"kept\"");
}

TEST(Cat, TellsThatTheNameWasWithdrawn) {
  std::string memory(large, 'x');
  ucx_server owner;
  publication shown = owner.publish("gone", std::as_bytes(std::span(memory)));
  const std::string url = shown.url();
  command cat(tool_program(), {"cat", url}, output::pipe);
  EXPECT_FALSE(cat.read(1).empty());
  shown.close();
  expect_failure(cat.finish(), 7, url);
}

}  // namespace
}  // namespace ucx::test
