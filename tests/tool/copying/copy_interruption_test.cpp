// `ucxio cp` that is ended by signals, and what it says of what it leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/process/process_memory.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/progress_objects.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr const char* goes_on = "ucxio: interrupted; --resume goes on with what is there\n";

class CopyInterruption : public copy_place {
 protected:
  CopyInterruption() { store_.make("x", content_); }

  /// Begins to copy "x" here, slowly, and returns when some of it is there.
  std::unique_ptr<command> begin(const std::string& program, std::vector<std::string> line) const {
    line.insert(line.end(), {"cp", "--bwlimit", "4M", "--progress", "json", url("x"), here("y")});
    auto running = std::make_unique<command>(program, line);
    EXPECT_TRUE(soon([&] {
      std::error_code ec;
      const auto size = std::filesystem::file_size(here(".y.ucxio-part"), ec);
      return !ec && size >= 2 * mib;
    }));
    return running;
  }
  /// Expects that it left the part, and told everything.
  void expect_tidy(const command_result& result) const {
    EXPECT_TRUE(result.in_time);
    EXPECT_THAT(result.err, HasSubstr(goes_on));
    EXPECT_EQ(last_progress_in(result.err)["outcome"], "interrupted") << result.err;
    EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre(".y.ucxio-part"));
    const std::string part = content_of(here(".y.ucxio-part"));
    EXPECT_TRUE(part == content_.substr(0, part.size()));
  }

  const std::string content_ = std::string(16 * mib, 'x');
};

/// Leaves a process room for less than a thread's stack.
void take_room(::pid_t from) {
  std::size_t pages = 0;
  std::ifstream("/proc/" + std::to_string(from) + "/statm") >> pages;
  const ::rlim_t size = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + 6 * mib;
  const ::rlimit limit{size, size};
  ASSERT_EQ(::prlimit(from, RLIMIT_AS, &limit, nullptr), 0);
}

TEST_F(CopyInterruption, NeedsNoThreadMore) {
  const auto running = begin(tool_program(), {});
  if (memory_is_measurable) take_room(running->pid());
  running->send_signal(SIGTERM);
  const command_result result = running->finish();
  EXPECT_EQ(result.signal, SIGTERM);
  expect_tidy(result);
}

TEST_F(CopyInterruption, TakesTwoSignalsAtOnceForOne) {
  const auto running = begin(tool_program(), {});
  running->send_signal(SIGTERM);
  running->send_signal(SIGINT);
  const command_result result = running->finish();
  EXPECT_THAT(result.signal, AnyOf(SIGTERM, SIGINT));
  expect_tidy(result);
}

/// It signals its child, and then the child's group.
TEST_F(CopyInterruption, IsTidyUnderTimeout) {
  const std::string timeout = "/usr/bin/timeout";
  if (!std::filesystem::exists(timeout)) GTEST_SKIP() << "there is no " << timeout;
  const auto running = begin(timeout, {"60", tool_program()});
  running->send_signal(SIGTERM);
  expect_tidy(running->finish());
}

TEST_F(CopyInterruption, IsTidyWhenItsTerminalCloses) {
  const auto running = begin(tool_program(), {});
  running->send_signal(SIGHUP);
  const command_result result = running->finish();
  EXPECT_EQ(result.signal, SIGHUP);
  expect_tidy(result);
}

/// Though UCX takes the signal for itself when it is loaded.
TEST_F(CopyInterruption, GoesOnUnderNohupWhenItsTerminalCloses) {
  const std::string nohup = "/usr/bin/nohup";
  if (!std::filesystem::exists(nohup)) GTEST_SKIP() << "there is no " << nohup;
  const auto running = begin(nohup, {tool_program()});
  running->send_signal(SIGHUP);
  running->send_signal(SIGTERM);
  const command_result result = running->finish();
  EXPECT_EQ(result.signal, SIGTERM);
  expect_tidy(result);
}

TEST_F(CopyInterruption, SaysThatNothingWasAddedWhereThatIsSo) {
  folder_.make("here/large", content_);
  command running(tool_program(), {"cp", "--resume", "--bwlimit", "1K", here("large"), here("y")});
  EXPECT_TRUE(soon([&] { return std::filesystem::exists(here(".y.ucxio-part")); }));
  running.send_signal(SIGINT);
  const command_result result = running.finish();
  EXPECT_EQ(result.signal, SIGINT);
  EXPECT_EQ(result.err, "ucxio: interrupted; nothing was added to what was there\n");
  EXPECT_THAT(names_in(folder_ / "here"), UnorderedElementsAre("large"));
}

TEST_F(CopyInterruption, SaysThatATreeGoesOnWithItsWholeFiles) {
  std::filesystem::create_directories(folder_ / "tree");
  for (int i = 0; i < 100; ++i) folder_.make("tree/f" + std::to_string(i), std::string(9999, 'x'));
  command running(tool_program(), {"cp", "-r", "--resume", "--bwlimit", "200K",
                                   (folder_ / "tree/.").string(), here("copy")});
  EXPECT_TRUE(soon([&] { return std::filesystem::exists(here("copy/f1")); }));
  running.send_signal(SIGINT);
  EXPECT_EQ(running.finish().err, goes_on);
}

}  // namespace
}  // namespace ucx::test
