// How much memory the tool takes, whatever goes through it: docs/reference/tool.md, "Memory".
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/child_process.hpp"
#include "support/process/command.hpp"
#include "support/process/process_memory.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/tool.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::test {
namespace {

/// Much more than any of the bounds.
constexpr std::size_t far_larger = 256 * mib;

// In MiB: what docs/reference/tool.md says, and half as much again; of agents twice as much,
// because newer UCX takes more for each conversation.
constexpr std::size_t copies = 40;
constexpr std::size_t copies_64_pieces = 120;
constexpr std::size_t compresses = 105;
constexpr std::size_t reads = 36;
constexpr std::size_t pipes = 60;
constexpr std::size_t serves = 45;
constexpr std::size_t serves_agent = 180;

/// Files that are far larger, and a bound for each command that reads or writes one of them.
class ToolMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!memory_is_measurable) GTEST_SKIP() << "a sanitizer keeps what is freed";
    if (std::getenv("UCXIO_TOOL") != nullptr) GTEST_SKIP() << "another build's tool may take more";
    std::filesystem::create_directories(store_ / "tree");
    std::filesystem::create_directories(folder_ / "here");
    store_.make("x", "");
    std::filesystem::resize_file(store_ / "x", far_larger);
    for (int i = 0; i < 16; ++i) {
      const std::string name = "tree/" + std::to_string(i);
      store_.make(name, noise(mib));
      std::filesystem::resize_file(store_ / name, far_larger / 16);
    }
  }

  /// Bytes that do not become shorter.
  static std::string noise(std::size_t size) {
    std::string all(size, '\0');
    std::uint64_t state = 1;
    for (char& each : all) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      each = static_cast<char>(state >> 56U);
    }
    return all;
  }
  std::string source() const { return (store_ / "x").string(); }
  std::string here(const std::string& name) const { return (folder_ / ("here/" + name)).string(); }
  std::vector<std::string> served(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"--store", (store_ / "").string(), "--writable"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// Expects that a command goes well with so many MiB.
  static void expect_to_fit(const std::vector<std::string>& arguments, std::size_t most) {
    const command_result result = run_tool(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    expect_at_most(result.peak_memory, most, arguments.front());
  }
  static void expect_at_most(std::size_t taken, std::size_t most, const std::string& who) {
    EXPECT_GT(taken, 0U) << who;
    EXPECT_LE(taken, most * mib) << who << ": " << taken / mib << " MiB";
  }
  static void expect_at_most(tool_server& server, std::size_t most) {
    expect_at_most(peak_memory(server.process().pid()), most, "serve");
  }
  static std::unique_ptr<command> shell(const std::string& line,
                                        const std::string& environment = "") {
    const std::string all = environment + " exec " + tool_program() + " " + line;
    return std::make_unique<command>("/bin/sh", std::vector<std::string>{"-c", all});
  }

  /// Returns how many bytes a process has read.
  static std::size_t bytes_read(pid_t by) {
    std::ifstream counts("/proc/" + std::to_string(by) + "/io");
    std::string name;
    std::size_t count = 0;
    counts >> name >> count;
    return name == "rchar:" ? count : 0;
  }

  const temporary_directory folder_;
  const temporary_directory store_;
};

TEST_F(ToolMemory, OfCopiesIsBounded) {
  tool_server server(served());
  const std::string url = server.url("x");
  expect_to_fit({"cp", url, here("x")}, copies);
  expect_to_fit({"cp", "--resume", "--verify", "--sparse", url, here("y")}, copies);
  expect_to_fit({"cp", source(), here("z")}, copies);
  expect_to_fit({"cp", source(), server.url("w")}, copies);
  expect_to_fit({"cp", "-r", server.url("tree"), here("tree")}, copies);
  expect_at_most(server, serves);
}

TEST_F(ToolMemory, OfManyPiecesAtATimeIsBounded) {
  tool_server server(served());
  expect_to_fit({"cp", "--parallel", "64", server.url("x"), here("x")}, copies_64_pieces);
  expect_at_most(server, serves);
}

TEST_F(ToolMemory, OfCompressionIsBounded) {
  tool_server server(served({"--agent"}));
  expect_to_fit({"cp", "--compress", "zstd", server.url("x"), here("x")}, compresses);
  expect_to_fit({"cp", "--compress", "zstd", "-r", server.url("tree"), here("tree")}, compresses);
  expect_to_fit({"cp", "--compress", "lz4", "-r", here("tree"), server.url("back")}, compresses);
  expect_at_most(server, serves_agent);
}

TEST_F(ToolMemory, OfAServerThatFetchesIsBounded) {
  tool_server source(served({"--agent"}));
  const temporary_directory copies_there;
  tool_server target(
      {"--store", (copies_there / "").string(), "--writable", "--fetch-from", "any"});
  expect_to_fit({"cp", "--direct", "-r", source.url("tree"), target.url("plain")}, reads);
  expect_to_fit(
      {"cp", "--direct", "-r", "--compress", "zstd", source.url("tree"), target.url("compressed")},
      reads);
  expect_at_most(source, serves_agent);
  expect_at_most(target, serves_agent);
}

TEST_F(ToolMemory, OfWhatReadsAndWritesIsBounded) {
  tool_server server(served());
  const command_result read = shell("cat " + server.url("x") + " >/dev/null")->finish();
  EXPECT_EQ(read.code, 0) << read.err;
  expect_at_most(read.peak_memory, reads, "cat");
  const command_result put = shell("put " + server.url("y") + " <" + source())->finish();
  EXPECT_EQ(put.code, 0) << put.err;
  expect_at_most(put.peak_memory, reads, "put");
  expect_to_fit({"hash", server.url("x")}, reads);
  expect_to_fit({"hash", source()}, reads);
  expect_at_most(server, serves);
}

TEST_F(ToolMemory, OfPipesIsBounded) {
  tool_server server({"--pipes"});
  const std::string url = server.url("pipe");
  for (const std::string way : {"export UCXIO_TRANSFER_METHOD=message;", ""}) {
    SCOPED_TRACE(way);
    const auto receives = shell("pipe receive " + url + " >/dev/null", way);
    const auto sends = shell("pipe send " + url + " <" + source(), way);
    auto receiving = std::async(std::launch::async, [&] { return receives->finish(); });
    const command_result sent = sends->finish();
    for (const command_result& end : {sent, receiving.get()}) {
      EXPECT_EQ(end.code, 0) << end.err;
      expect_at_most(end.peak_memory, pipes, "pipe");
    }
  }
}

/// A reader whose output nobody takes for a while: the window fills, and no more than that.
TEST_F(ToolMemory, OfAPipeThatNobodyReadsIsBounded) {
  tool_server server({"--pipes"});
  const std::string url = server.url("pipe");
  command receives(tool_program(), {"pipe", "receive", url}, command::output::pipe);
  const auto sends = shell("pipe send " + url + " <" + source());
  EXPECT_EQ(receives.read(1).size(), 1U);
  // By then it waits for the window.
  EXPECT_TRUE(soon([&] { return bytes_read(sends->pid()) >= pipe_options().window; }));
  for (const pid_t end : {receives.pid(), sends->pid()}) {
    expect_at_most(peak_memory(end), pipes, "pipe");
  }
}

/// Returns how many bytes of a process are resident.
std::size_t resident_of(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6)) * 1024;
  }
  return 0;
}

/// Has several clients write a file, and kills them in the middle of it.
void kill_writers(const tool_server& server, const std::filesystem::path& spool) {
  constexpr std::size_t writers = 8;
  std::vector<std::unique_ptr<child_process>> all;
  for (std::size_t i = 0; i < writers; ++i) {
    const std::string line = "(head -c 3000000 /dev/zero; exec sleep 100) | exec " +
                             tool_program() + " put " + server.url("n" + std::to_string(i));
    all.push_back(std::make_unique<child_process>("/usr/bin/setsid",
                                                  std::vector<std::string>{"/bin/sh", "-c", line}));
  }
  const auto are_written = [&] {
    std::size_t count = 0;
    for (const auto& each : std::filesystem::directory_iterator(spool)) {
      if (each.file_size() >= 2 * mib) ++count;
    }
    return count == writers;
  };
  EXPECT_TRUE(soon(are_written));
  for (const auto& each : all) ::kill(-each->pid(), SIGKILL);
  EXPECT_TRUE(soon([&] { return std::filesystem::is_empty(spool); }));
}

/// Ten cycles of forty: what is lost with each writer grows with all of them.
TEST(ServeMemory, IsGivenBackWhenWritersAreKilled) {
  if (!memory_is_measurable) GTEST_SKIP() << "a sanitizer keeps what is freed";
  const temporary_directory store;
  tool_server server({"--store", store / "", "--writable"});
  const pid_t process = server.process().pid();
  const std::filesystem::path spool = store / ".ucxio-unfinished";
  const auto cycle = [&] {
    for (int i = 0; i < 5; ++i) kill_writers(server, spool);
  };
  cycle();
  // What UCX keeps has its size by then.
  EXPECT_TRUE(soon([&] { return resident_of(process) <= serves * mib; })) << resident_of(process);
  const std::size_t first = resident_of(process);
  std::string sizes = std::to_string(first);
  for (int i = 1; i < 10; ++i) {
    cycle();
    // An arena of the C library's may come late.
    const bool flat = soon([&] { return resident_of(process) <= first + 4 * mib; });
    sizes += ", " + std::to_string(resident_of(process));
    ASSERT_TRUE(flat) << sizes;
  }
}

}  // namespace
}  // namespace ucx::test
