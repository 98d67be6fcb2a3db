// Trees that are copied from server to server, or compressed, and that end on the way: what is
// there stays, the same command goes on, and nothing is copied twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "support/basics/soon.hpp"
#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/copied_tree.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/progress_objects.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int files = 12;

/// From where to where a tree goes, and how.
struct tree_route {
  const char* name;
  bool from_server;
  bool to_server;
  std::vector<std::string> options;
};

void PrintTo(const tree_route& route, std::ostream* out) { *out << route.name; }

/// A MiB of which the half becomes shorter.
std::string content(int number) {
  std::string made = pattern_text(mib / 2, static_cast<std::uint64_t>(number));
  while (made.size() < mib) made += "line of log " + std::to_string(number) + '\n';
  return made;
}

class ResumedTree : public testing::TestWithParam<tree_route> {
 protected:
  ResumedTree() {
    std::filesystem::create_directories(files_ / "tree/sub/deep");
    for (int i = 0; i < files; ++i) {
      files_.make("tree/" + std::string(i % 3 == 0 ? "sub/deep/" : "") + std::to_string(i),
                  content(i));
    }
    files_.make("tree/sub/nothing", "");
    std::filesystem::create_directories(copies_ / "copy");
    start_owner();
    start_target();
  }

  void start_owner() {
    owner_.reset();
    owner_.emplace(std::vector<std::string>{"--store", (files_ / "").string(), "--agent"});
  }
  void start_target() {
    target_.reset();
    target_.emplace(std::vector<std::string>{"--store", (copies_ / "").string(), "--writable",
                                             "--agent", "--fetch-from", "127.0.0.1"});
  }

  std::string from() const {
    return GetParam().from_server ? owner_->url("tree") : (files_ / "tree").string();
  }
  std::string to() const {
    return GetParam().to_server ? target_->url("copy/") : (copies_ / "copy/").string();
  }
  std::filesystem::path copied() const { return copies_ / "copy/tree"; }

  std::vector<std::string> line(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> made{"cp", "-r", "--resume"};
    made.insert(made.end(), GetParam().options.begin(), GetParam().options.end());
    made.insert(made.end(), more.begin(), more.end());
    made.push_back(from());
    made.push_back(to());
    return made;
  }
  command_result again(const std::vector<std::string>& more = {}) const {
    return run_tool(line(more));
  }

  std::map<std::string, ino_t> whole() const { return whole_files(copied(), files_ / "tree"); }
  std::size_t parts() const {
    std::size_t count = 0;
    for (const auto& each : std::filesystem::recursive_directory_iterator(copies_ / "copy")) {
      if (is_part(each.path())) ++count;
    }
    return count;
  }
  /// Begins to copy, so slowly that things happen meanwhile; returns when two files are whole.
  std::unique_ptr<command> begin(bool resumes = true) const {
    std::vector<std::string> words = line({"--bwlimit", "3M", "--parallel", "2"});
    if (!resumes) std::erase(words, "--resume");
    auto running = std::make_unique<command>(tool_program(), words);
    EXPECT_TRUE(soon([&] { return whole_names() >= 2; }));
    return running;
  }
  /// Expects that the same command goes on, and leaves what was whole alone.
  void expect_to_go_on(const std::map<std::string, ino_t>& there) const {
    EXPECT_TRUE(soon([&] { return again().code == 0; })) << again().err;
    const std::map<std::string, ino_t> now = whole();
    EXPECT_EQ(now.size(), files + 1U);
    EXPECT_EQ(parts(), 0U);
    for (const auto& [name, was] : there) EXPECT_EQ(now.at(name), was) << name;
  }

  const temporary_directory files_;
  const temporary_directory copies_;
  std::optional<tool_server> owner_;
  std::optional<tool_server> target_;

 private:
  std::size_t whole_names() const {
    std::size_t count = 0;
    std::error_code ec;
    for (std::filesystem::recursive_directory_iterator at(copied(), ec), end; !ec && at != end;
         at.increment(ec)) {
      if (at->is_regular_file(ec) && !is_part(at->path())) ++count;
    }
    return count;
  }
};

TEST_P(ResumedTree, GoesOnWhereItWasInterrupted) {
  const auto running = begin();
  running->send_signal(SIGINT);
  const command_result result = running->finish();
  EXPECT_EQ(result.signal, SIGINT);
  EXPECT_EQ(result.err, "ucxio: interrupted; --resume goes on with what is there\n");
  const std::map<std::string, ino_t> there = whole();
  EXPECT_GE(there.size(), 2U);
  EXPECT_LT(there.size(), static_cast<std::size_t>(files));
  expect_to_go_on(there);
}

/// At a server what is not whole has no name then.
TEST_P(ResumedTree, KeepsWholeFilesWhereItWasNotToBeResumed) {
  const auto running = begin(false);
  running->send_signal(SIGINT);
  const command_result result = running->finish();
  EXPECT_EQ(result.signal, SIGINT);
  const bool has_parts = parts() > 0;
  EXPECT_FALSE(has_parts && GetParam().to_server);
  EXPECT_EQ(result.err, has_parts
                            ? "ucxio: interrupted; --resume goes on with what is there\n"
                            : "ucxio: interrupted; nothing is left of what was not finished\n");
  expect_to_go_on(whole());
}

TEST_P(ResumedTree, CopiesNothingTwice) {
  ASSERT_EQ(again().code, 0);
  const std::map<std::string, ino_t> there = whole();
  EXPECT_EQ(there.size(), files + 1U);
  const command_result result = again({"--progress", "json"});
  EXPECT_EQ(result.code, 0) << result.err;
  const auto last = last_progress_in(result.err);
  EXPECT_EQ(last["bytes"], last["total_bytes"]);
  EXPECT_EQ(last["average_bytes_per_second"], 0.0) << result.err;
  EXPECT_EQ(whole(), there);
}

class ResumedTreeOfAServer : public ResumedTree {};
class ResumedTreeAtAServer : public ResumedTree {};

TEST_P(ResumedTreeOfAServer, GoesOnWhenThatWasKilled) {
  const auto running = begin();
  owner_->process().kill();
  const command_result result = running->finish();
  expect_failure(result, lost, owner_->url());
  EXPECT_THAT(result.err, Not(HasSubstr(".ucxio-agent"))) << "nobody knows that name";
  const std::map<std::string, ino_t> there = whole();
  EXPECT_GE(there.size(), 2U);
  start_owner();
  expect_to_go_on(there);
}

TEST_P(ResumedTreeAtAServer, GoesOnWhenThatWasKilled) {
  const auto running = begin();
  target_->process().kill();
  const command_result result = running->finish();
  expect_failure(result, lost, target_->url());
  EXPECT_THAT(result.err, Not(HasSubstr(".ucxio-agent"))) << "nobody knows that name";
  const std::map<std::string, ino_t> there = whole();
  EXPECT_GE(there.size(), 2U);
  start_target();
  expect_to_go_on(there);
}

std::string name_of(const testing::TestParamInfo<tree_route>& chosen) { return chosen.param.name; }

const tree_route direct{"direct", true, true, {"--direct"}};
const tree_route direct_compressed{
    "direct_compressed", true, true, {"--direct", "--compress", "zstd"}};
const tree_route through_here{"through_here_compressed", true, true, {"--compress", "lz4"}};
const tree_route there{"there_compressed", false, true, {"--compress", "zstd"}};
const tree_route here{"here_compressed", true, false, {"--compress", "lz4"}};

INSTANTIATE_TEST_SUITE_P(, ResumedTree,
                         testing::Values(direct, direct_compressed, through_here, there, here),
                         name_of);
INSTANTIATE_TEST_SUITE_P(, ResumedTreeOfAServer,
                         testing::Values(direct, direct_compressed, through_here, here), name_of);
INSTANTIATE_TEST_SUITE_P(, ResumedTreeAtAServer,
                         testing::Values(direct, direct_compressed, through_here, there), name_of);

}  // namespace
}  // namespace ucx::test
