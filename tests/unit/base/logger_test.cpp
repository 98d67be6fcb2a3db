#include "support/basics/mentions.hpp"
#include "ucx/context.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "base/logger.hpp"
#include "support/bytes/pattern.hpp"
#include "support/process/process_reading.hpp"
#include "support/simulated/served_region.hpp"
#include "support/simulated/simulated_messages.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_atomic.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {
namespace {

/// Sets UCXIO_LOG for one test.
class log_variable {
 public:
  explicit log_variable(const std::string& value) { ::setenv("UCXIO_LOG", value.c_str(), 1); }
  ~log_variable() { ::unsetenv("UCXIO_LOG"); }
  log_variable(const log_variable&) = delete;
  log_variable& operator=(const log_variable&) = delete;
};

std::string lines_of(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& each : lines) all += each + "\n";
  return all;
}

/// What a transfer leaves in the log of a level.
std::vector<std::string> logged(log_level level) {
  std::vector<std::string> lines;
  simulated_pair_options sides;
  sides.reader_context.log.level = level;
  sides.reader_context.log.sink = [&lines, level](log_level of, std::string_view line) {
    EXPECT_LE(of, level);
    lines.emplace_back(line);
  };
  simulated_pair pair(sides);
  std::vector<std::byte> memory = pattern(100);
  const memory_region exposed(pair.owner_context, std::span<std::byte>(memory), access::read);
  endpoint connection = pair.connect();
  remote_region region(connection, exposed.descriptor());
  std::vector<std::byte> into(60);
  region.read_at(7, into);
  std::error_code ec;
  pair.owner_process.kill();
  region.read_at(7, into, {}, ec);
  EXPECT_TRUE(ec);
  return lines;
}

TEST(Log, SaysNothingUnlessItIsAsked) {
  std::vector<std::string> lines;
  simulated_pair_options sides;
  sides.reader_context.log.sink = [&](log_level, std::string_view line) {
    lines.emplace_back(line);
  };
  simulated_pair pair(sides);
  pair.connect().wait_connected();
  EXPECT_TRUE(lines.empty()) << lines_of(lines);
  EXPECT_TRUE(logged(log_level::none).empty());
}

TEST(Log, TellsOfConnectionsThatAreLost) {
  const std::vector<std::string> lines = logged(log_level::warning);
  ASSERT_EQ(lines.size(), 1U) << lines_of(lines);
  EXPECT_TRUE(mentions(lines[0], "connection 1 to")) << lines[0];
  EXPECT_TRUE(mentions(lines[0], "ended: ")) << lines[0];
}

TEST(Log, TracesEachOperationAtDebug) {
  const std::string lines = lines_of(logged(log_level::debug));
  EXPECT_TRUE(mentions(lines, "context made: ")) << lines;
  EXPECT_TRUE(mentions(lines, "established")) << lines;
  EXPECT_TRUE(mentions(lines, " over tcp/")) << lines;
  EXPECT_TRUE(mentions(lines, "operation 1: ")) << lines;
  EXPECT_TRUE(mentions(lines, "60 bytes at offset 7 of region")) << lines;
  EXPECT_TRUE(mentions(lines, "connection 1: done")) << lines;
  EXPECT_TRUE(mentions(lines, "connection 1: the connection was lost")) << lines;
  EXPECT_FALSE(mentions(lines, "frame")) << lines;
}

/// What both sides of a pair write at debug.
struct traced_pair {
  simulated_pair_options options(simulated_pair_options made = {}) {
    for (context_options* each : {&made.owner_context, &made.reader_context}) {
      each->log = {log_level::debug,
                   [this](log_level, std::string_view line) { lines.append(line).append("\n"); }};
    }
    return made;
  }
  bool says(const std::string& words) const { return mentions(lines, words); }

  std::string lines;
};

TEST(Log, TellsWhichTagsWereWantedAndReceived) {
  traced_pair traced;
  simulated_messages both(traced.options());
  std::vector<std::byte> into(100);
  const std::vector<std::byte> bytes = pattern(60);
  both.sender.send(7, bytes);
  both.receiver().receive(7, into);
  EXPECT_TRUE(traced.says(": send of 60 bytes with tag 7 to ")) << traced.lines;
  EXPECT_TRUE(
      traced.says(": receive of a message with tag 7 from anybody (of 60 bytes, with tag "
                  "7): done"))
      << traced.lines;
  both.sender.send(0x105, bytes);
  both.receiver().receive({5, 0xff}, into);
  EXPECT_TRUE(traced.says("with tag 5 by mask 255 from anybody (of 60 bytes, with tag 261): done"))
      << traced.lines;
  both.sender.send(0, {});
  both.receiver().receive(tag_match::any(), into);
  EXPECT_TRUE(traced.says("with any tag from anybody (of 0 bytes, with tag 0): done"))
      << traced.lines;
  request never = both.receiver().start_receive(9, into);
  never.cancel();
  EXPECT_TRUE(traced.says("a message with tag 9 from anybody: the operation was canceled"))
      << traced.lines;
  both.sender.send(active_message{3}, bytes, {.until = send_until::reusable});
  both.settle();
  EXPECT_TRUE(traced.says(": send of 60 bytes for handler 3 to ")) << traced.lines;
}

TEST(Log, TracesWhatIsOverWithinItsCall) {
  traced_pair traced;
  simulated_pair_options options = traced.options();
  options.shares_memory = true;
  simulated_pair pair(options);
  const memory_region exposed =
      memory_region::allocate(pair.owner_context, 1000, access::read_write);
  endpoint connection = pair.connect();
  remote_region region(connection, exposed.descriptor());
  ASSERT_EQ(region.transfer_method(), transfer_method::mapped);
  std::vector<std::byte> into(60);
  region.read_at(7, into);
  EXPECT_TRUE(traced.says(": read of 60 bytes at offset 7 of region ")) << traced.lines;
  region.write_at(8, into);
  EXPECT_TRUE(traced.says(": write of 60 bytes at offset 8 of region ")) << traced.lines;
  remote_atomic<std::uint64_t>(region, 16).fetch_add(1);
  EXPECT_TRUE(traced.says(": atomic access to 8 bytes at offset 16 of region ")) << traced.lines;
  EXPECT_TRUE(traced.says(", within the call, connection 1: done")) << traced.lines;
}

TEST(Log, TracesWhatIsReadWhereItLies) {
  if (!system_reads_processes()) GTEST_SKIP() << "process_vm_readv is forbidden here";
  traced_pair traced;
  simulated_pair_options options = traced.options(one_host());
  options.shares_memory = true;
  served_region served(1000, options, access::read);
  std::vector<std::byte> into(60);
  served.region.read_at(7, into);
  EXPECT_TRUE(traced.says(": read of 60 bytes at offset 7 of region ")) << traced.lines;
  EXPECT_TRUE(traced.says(", within the call, connection 1: done")) << traced.lines;
}

TEST(Log, ShowsTheProtocolAtTrace) {
  const std::string lines = lines_of(logged(log_level::trace));
  EXPECT_TRUE(mentions(lines, "sends frame 1 of session")) << lines;
  EXPECT_TRUE(mentions(lines, "hears frame 2 of session")) << lines;
}

TEST(Log, EscapesWhatPeersSay) {
  EXPECT_EQ(detail::escaped("a\nb\x1b[31m\\\x80"), "a\\x0ab\\x1b[31m\\x5c\\x80");
  std::string line;
  simulated_pair_options sides;
  sides.owner_worker.name = "owner\x9b";
  sides.reader_context.log.level = log_level::info;
  sides.reader_context.log.sink = [&](log_level, std::string_view said) { line = said; };
  simulated_pair pair(sides);
  pair.connect().wait_connected();
  EXPECT_EQ(line.find_first_not_of(" !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\"
                                   "]^_`abcdefghijklmnopqrstuvwxyz{|}~"),
            std::string::npos)
      << line;
}

TEST(Log, GoesToAFileThatTheEnvironmentNames) {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("ucxio-log-" + std::to_string(::getpid())))
          .string();
  {
    const log_variable set("info:" + path);
    simulated_pair pair;
    pair.connect().wait_connected();
  }
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  std::remove(path.c_str());
  EXPECT_TRUE(mentions(text.str(), " ucxio info ")) << text.str();
  EXPECT_TRUE(mentions(text.str(), "established")) << text.str();
}

TEST(Log, OptionsWinOverTheEnvironment) {
  const log_variable set("trace");
  std::vector<std::string> lines;
  simulated_pair_options sides;
  sides.owner_context.log.level = log_level::none;
  sides.reader_context.log.level = log_level::none;
  sides.reader_context.log.sink = [&](log_level, std::string_view line) {
    lines.emplace_back(line);
  };
  simulated_pair pair(sides);
  pair.connect().wait_connected();
  EXPECT_TRUE(lines.empty());
}

TEST(Log, BadEnvironmentIsAnError) {
  for (const std::string value : {"loud", "debug:/nonexistent/directory/log", ":x"}) {
    const log_variable set(value);
    fake_network network;
    std::error_code ec;
    const context none = detail::core_access::make_context(network.add_process("p").api(), {}, ec);
    EXPECT_EQ(ec, errc::bad_configuration) << value;
  }
}

}  // namespace
}  // namespace ucx::test
