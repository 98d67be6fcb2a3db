// What becomes of copies where the file system is really full, and when there is room again.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/process/own_mounts.hpp"
#include "support/tool/copied_tree.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int no_output = 9;
constexpr int no_space = 12;
constexpr std::size_t little = 8 * mib;
constexpr std::size_t enough = 64 * mib;

/// A disk on which "x" does not fit, which copies to paths see beforehand, but with --sparse, a
/// server of it, and one that has "x".
class FullDisk : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!disk_.is_there()) GTEST_SKIP() << "nothing can be mounted here: " << disk_.why_not();
    files_.make("x", whole_);
    owner_.emplace(std::vector<std::string>{"--store", (files_ / "").string(), "--agent"});
    full_.emplace(std::vector<std::string>{"--store", (disk_ / "").string(), "--writable",
                                           "--agent", "--fetch-from", "127.0.0.1"});
  }

  std::string source() const { return (files_ / "x").string(); }
  std::string source_url() const { return owner_->url("x"); }
  std::string target() const { return (disk_ / "x").string(); }
  std::string here() const { return (disk_ / "").string(); }
  std::string there() const { return full_->url(""); }
  std::string target_url() const { return full_->url("x"); }

  /// Returns the names on the disk, without the place where a store keeps what has no name yet.
  std::vector<std::string> names() const {
    std::vector<std::string> all = names_in(disk_ / "");
    std::erase(all, ".ucxio-unfinished");
    return all;
  }
  /// Expects that there is nothing but the beginning of "x", as what can be resumed.
  void expect_part() const {
    EXPECT_THAT(names(), ElementsAre(".x.ucxio-part"));
    const std::string part = content_of(disk_ / ".x.ucxio-part");
    EXPECT_GT(part.size(), mib);
    EXPECT_LE(part.size(), little);
    EXPECT_TRUE(whole_.starts_with(part));
  }
  /// Makes room, and expects that the same command goes on with what is there.
  void expect_to_go_on(const std::vector<std::string>& line) {
    const ino_t part = identity(disk_ / ".x.ucxio-part");
    disk_.resize(enough);
    const command_result again = run_tool(line);
    EXPECT_EQ(again.code, 0) << again.err;
    EXPECT_EQ(again.err, "");
    EXPECT_THAT(names(), ElementsAre("x"));
    EXPECT_TRUE(content_of(disk_ / "x") == whole_);
    EXPECT_EQ(identity(disk_ / "x"), part) << "it was begun anew";
  }
  void expect_stopped_and_resumed(const std::vector<std::string>& line, const std::string& where) {
    expect_no_space(run_tool(line), where + ".x.ucxio-part");
    expect_part();
    expect_to_go_on(line);
  }
  /// Expects that it says which file there is no room for; here by the system's own words.
  static void expect_no_space(const command_result& result, const std::string& where) {
    const bool is_remote = where.starts_with("ucxs://");
    expect_failure(result, no_space, is_remote ? "a quota is full" : "No space left on device");
    EXPECT_THAT(result.err, HasSubstr(where));
  }

  /// Runs a line of the shell, in which $UCXIO is the tool.
  static std::unique_ptr<command> shell(const std::string& line) {
    const std::string all = "UCXIO=" + tool_program() + "; " + line;
    return std::make_unique<command>("/bin/sh", std::vector<std::string>{"-c", all});
  }

  const std::string whole_ = pattern_text(20 * mib + 3);
  small_disk disk_{little};
  const temporary_directory files_;
  std::optional<tool_server> owner_;
  std::optional<tool_server> full_;
};

TEST_F(FullDisk, IsSeenBeforeAByteIsWritten) {
  for (const std::string& from : {source(), source_url()}) {
    expect_no_space(run_tool({"cp", from, target()}), here());
    EXPECT_THAT(names(), ::testing::IsEmpty());
  }
  expect_no_space(run_tool({"cp", "--compress", "lz4", source_url(), target()}), here());
  EXPECT_THAT(names(), ::testing::IsEmpty());
  // What is there already needs no room.
  std::ofstream(disk_ / ".x.ucxio-part") << whole_.substr(0, 2 * mib);
  expect_no_space(run_tool({"cp", "--resume", source_url(), target()}), here());
  EXPECT_EQ(content_of(disk_ / ".x.ucxio-part"), whole_.substr(0, 2 * mib));
  disk_.resize(20 * mib + (std::size_t{64} << 10U));
  const command_result rest = run_tool({"cp", "--resume", source_url(), target()});
  EXPECT_EQ(rest.code, 0) << rest.err;
  EXPECT_TRUE(content_of(disk_ / "x") == whole_);
}

TEST_F(FullDisk, HasRoomForTheOthersWhereOneCouldNeverFit) {
  std::filesystem::create_directory(files_ / "tree");
  files_.make("tree/small", "small");
  files_.make("tree/large", whole_);
  const command_result result = run_tool({"cp", "-r", owner_->url("tree"), here()});
  EXPECT_EQ(result.code, 11) << result.err;
  EXPECT_THAT(result.err, HasSubstr("large"));
  EXPECT_THAT(names_in(disk_ / "tree"), ElementsAre("small"));
}

TEST_F(FullDisk, KeepsThePartOfACopyFromAPath) {
  expect_stopped_and_resumed({"cp", "--sparse", "--resume", source(), target()}, here());
}

TEST_F(FullDisk, KeepsThePartOfACopyFromAServer) {
  expect_stopped_and_resumed(
      {"cp", "--sparse", "--max-size", "1G", "--resume", "--verify", source_url(), target()},
      here());
}

TEST_F(FullDisk, KeepsThePartWithoutBeingToldTo) {
  expect_no_space(run_tool({"cp", "--sparse", "--max-size", "1G", source_url(), target()}), here());
  expect_part();
  expect_to_go_on({"cp", "--resume", source_url(), target()});
}

TEST_F(FullDisk, KeepsThePartOfACopyToAServer) {
  expect_stopped_and_resumed({"cp", "--resume", source(), target_url()}, there());
}

TEST_F(FullDisk, KeepsThePartOfACopyFromServerToServer) {
  expect_stopped_and_resumed({"cp", "--resume", source_url(), target_url()}, there());
}

TEST_F(FullDisk, KeepsThePartOfWhatAServerFetches) {
  expect_stopped_and_resumed({"cp", "--direct", "--resume", source_url(), target_url()}, there());
}

TEST_F(FullDisk, KeepsThePartOfWhatIsCompressed) {
  expect_stopped_and_resumed({"cp", "--sparse", "--max-size", "1G", "--compress", "zstd",
                              "--resume", source_url(), target()},
                             here());
  std::filesystem::remove(target());
  disk_.resize(little);
  expect_stopped_and_resumed({"cp", "--compress", "lz4", "--resume", source(), target_url()},
                             there());
}

TEST_F(FullDisk, LeavesWhatWasThereAndNothingElseOfAnUpload) {
  for (const bool puts : {true, false}) {
    std::ofstream(disk_ / "x") << "old";
    const command_result result =
        puts ? shell("exec $UCXIO put " + target_url() + " <" + source())->finish()
             : run_tool({"cp", source(), target_url()});
    expect_no_space(result, target_url());
    EXPECT_THAT(names(), ElementsAre("x"));
    EXPECT_EQ(content_of(disk_ / "x"), "old");
    // What the failed one had taken is free again.
    std::filesystem::remove(disk_ / "x");
    const std::string fits = files_.make("fits", pattern_text(6 * mib));
    const command_result next = run_tool({"cp", fits, target_url()});
    EXPECT_EQ(next.code, 0) << next.err;
    EXPECT_TRUE(content_of(disk_ / "x") == content_of(fits));
    std::filesystem::remove(disk_ / "x");
  }
}

TEST_F(FullDisk, TakesWhatFitsWithoutAByteToSpare) {
  const std::string fits = files_.make("fits", pattern_text(little));
  const command_result uploaded = run_tool({"cp", fits, full_->url("fits")});
  EXPECT_EQ(uploaded.code, 0) << uploaded.err;
  EXPECT_TRUE(content_of(disk_ / "fits") == content_of(fits));
}

TEST_F(FullDisk, HasRoomForHoles) {
  files_.make("holes", "begin");
  std::filesystem::resize_file(files_ / "holes", enough);
  for (const std::string& to : {(disk_ / "holes").string(), full_->url("holes")}) {
    const command_result result = run_tool({"cp", "--sparse", (files_ / "holes").string(), to});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(std::filesystem::file_size(disk_ / "holes"), enough);
    std::filesystem::remove(disk_ / "holes");
  }
}

/// A tree that does not fit.
class FullDiskTree : public FullDisk {
 protected:
  void SetUp() override {
    FullDisk::SetUp();
    if (IsSkipped()) return;
    std::filesystem::create_directories(tree_ / "sub");
    for (int i = 0; i < 20; ++i) {
      const std::string name = "tree/" + std::string(i % 2 == 0 ? "" : "sub/") + std::to_string(i);
      files_.make(name, pattern_text(mib - 100, static_cast<std::uint64_t>(i)));
    }
  }

  /// Expects that it ends at once, naming `where`, and goes on where it was, in `copy` on the disk.
  void expect_stopped_and_resumed(const std::vector<std::string>& line, const std::string& where,
                                  const std::string& copy) {
    disk_.resize(little);
    std::filesystem::create_directory(disk_ / "copy");
    expect_no_space(run_tool(line), where);
    const std::map<std::string, ino_t> there = whole_files(disk_ / copy, tree_);
    EXPECT_FALSE(there.empty());
    disk_.resize(enough);
    const command_result again = run_tool(line);
    EXPECT_EQ(again.code, 0) << again.err;
    for (const auto& [name, was] : there) {
      EXPECT_EQ(identity(disk_ / copy / name), was) << name;
    }
    const command_result same =
        shell("diff -r " + tree_.string() + " " + (disk_ / copy).string())->finish();
    EXPECT_EQ(same.code, 0) << same.out;
    std::filesystem::remove_all(disk_ / "copy");
  }

  const std::filesystem::path tree_ = files_ / "tree";
};

TEST_F(FullDiskTree, GoesOnHere) {
  const std::string to = (disk_ / "copy").string();
  expect_stopped_and_resumed({"cp", "-r", "--resume", tree_.string() + "/.", to}, to, "copy");
}

TEST_F(FullDiskTree, GoesOnAtAServer) {
  const std::string to = full_->url("copy");
  expect_stopped_and_resumed({"cp", "-r", "--resume", tree_.string() + "/.", to}, to, "copy");
}

TEST_F(FullDiskTree, GoesOnWhereAServerFetchesIt) {
  const std::string from = owner_->url("tree");
  const std::string to = full_->url("copy/");
  expect_stopped_and_resumed({"cp", "-r", "--direct", "--resume", from, to}, to, "copy/tree");
  expect_stopped_and_resumed(
      {"cp", "-r", "--direct", "--resume", "--verify", "--compress", "zstd", from, to}, to,
      "copy/tree");
}

TEST_F(FullDiskTree, GoesOnWhereItIsCompressed) {
  const std::string here = (disk_ / "copy/").string();
  expect_stopped_and_resumed(
      {"cp", "-r", "--compress", "lz4", "--resume", owner_->url("tree"), here}, here, "copy/tree");
  const std::string there = full_->url("copy/");
  expect_stopped_and_resumed({"cp", "-r", "--compress", "zstd", "--resume", tree_.string(), there},
                             there, "copy/tree");
}

TEST_F(FullDisk, IsOneWithoutRoomForNames) {
  std::filesystem::create_directories(files_ / "many");
  for (int i = 0; i < 100; ++i) files_.make("many/" + std::to_string(i), "small");
  disk_.resize(little, ",nr_inodes=30");
  for (const std::string& to : {(disk_ / "many").string(), full_->url("many")}) {
    expect_no_space(run_tool({"cp", "-r", (files_ / "many").string(), to}), to);
    for (const std::string& name : names_in(disk_ / "many")) {
      EXPECT_EQ(content_of(disk_ / ("many/" + name)), "small") << name;
    }
    std::filesystem::remove_all(disk_ / "many");
  }
}

TEST_F(FullDisk, FailsWhoWritesItsOutputThere) {
  const command_result read = shell("exec $UCXIO cat " + source_url() + " >" + target())->finish();
  expect_failure(read, no_output, "No space left on device");
  EXPECT_TRUE(whole_.starts_with(content_of(target())));

  const tool_server meeting({"--pipes"});
  const std::string pipe = meeting.url("pipe");
  const auto receives = shell("exec $UCXIO pipe receive " + pipe + " >" + target());
  const auto sends = shell("exec $UCXIO pipe send " + pipe + " <" + source());
  expect_failure(receives->finish(), no_output, "No space left on device");
  expect_failure(sends->finish(), lost, "the reader left");
  EXPECT_TRUE(whole_.starts_with(content_of(target())));
}

}  // namespace
}  // namespace ucx::test
