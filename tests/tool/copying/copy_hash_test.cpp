// `ucxio cp --hash`: what it says of a file is what `ucxio hash` says of the copy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/copy_place.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {
namespace {

class CopyHash : public copy_place {
 protected:
  /// Returns a content in which no two places look alike, but for its zeros.
  static std::string content(std::size_t size, std::size_t zeros = 0) {
    return pattern_text(size).insert(size / 2, std::string(zeros, '\0')) + std::string(zeros, '\0');
  }
  /// Copies, and expects to be told what `ucxio hash` tells of the copies.
  static void expect_hashed(std::vector<std::string> arguments, std::vector<std::string> copies) {
    arguments.insert(arguments.begin(), {"cp", "--hash", "xxh3"});
    const command_result copied = run_tool(arguments);
    EXPECT_EQ(copied.code, 0) << copied.err;
    EXPECT_EQ(copied.err, "");
    copies.insert(copies.begin(), "hash");
    const command_result there = run_tool(copies);
    EXPECT_EQ(there.code, 0) << there.err;
    EXPECT_EQ(sorted_lines(copied.out), sorted_lines(there.out));
    EXPECT_FALSE(copied.out.empty());
  }
  static std::vector<std::string> sorted_lines(const std::string& text) {
    std::vector<std::string> all;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) all.push_back(line);
    std::sort(all.begin(), all.end());
    return all;
  }
};

TEST_F(CopyHash, IsThatOfTheCopy) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, mib, 5 * mib + 7}) {
    folder_.make("here/x", content(size));
    expect_hashed({here("x"), url("x")}, {url("x")});
    expect_hashed({url("x"), here("y")}, {here("y")});
    expect_hashed({"--parallel", "5", here("x"), here("z")}, {here("z")});
  }
}

TEST_F(CopyHash, CountsHolesAsZeros) {
  folder_.make("here/x", content(3 * mib, 7 * mib + 5));
  copy({"--sparse", here("x"), here("y")});  // which then has holes
  expect_hashed({"--sparse", here("y"), here("z")}, {here("z")});
  expect_hashed({"--sparse", here("y"), url("z")}, {url("z")});
}

TEST_F(CopyHash, IsThatOfAllWhereSomeWasThere) {
  const std::string whole = content(5 * mib + 7);
  folder_.make("here/x", whole);
  folder_.make("here/.y.ucxio-part", whole.substr(0, 2 * mib));
  store_.make(".y.ucxio-part", whole.substr(0, 2 * mib));
  expect_hashed({"--resume", here("x"), here("y")}, {here("y")});
  expect_hashed({"--resume", here("x"), url("y")}, {url("y")});
  expect_hashed({"--resume", here("x"), url("y")}, {url("y")});  // nothing is copied
  store_.make("none", "");
  expect_hashed({"--resume", url("none"), here("none")}, {here("none")});
  expect_hashed({"--resume", url("none"), here("none")}, {here("none")});
}

TEST_F(CopyHash, IsToldForEachFileOfATree) {
  std::filesystem::create_directories(folder_ / "tree/a");
  folder_.make("tree/large", content(3 * mib));
  std::vector<std::string> copies{url("tree/large")};
  for (int i = 0; i < 40; ++i) {
    const std::string name = "tree/a/f" + std::to_string(i);
    folder_.make(name, content(static_cast<std::size_t>(i)));
    copies.push_back(url(name));
  }
  expect_hashed({"-r", (folder_ / "tree").string(), server_.url()}, copies);
}

TEST_F(CopyHash, IsThatOfTheBytesWhateverTheyWereOnTheWay) {
  const temporary_directory files;
  const tool_server agent({"--store", (files / "").string(), "--writable", "--agent"});
  const std::string whole = content(3 * mib, mib);
  files.make("x", whole);
  expect_hashed({"--compress", "zstd", agent.url("x"), here("x")}, {here("x")});
  folder_.make("here/.y.ucxio-part", whole.substr(0, mib));
  expect_hashed({"--compress", "zstd", "--resume", agent.url("x"), here("y")}, {here("y")});
}

/// A copy is worth more than the line that tells of it.
TEST_F(CopyHash, CopiesAlsoWhereNobodyReadsIt) {
  folder_.make("here/x", "1");
  folder_.make("here/y", "2");
  const std::vector<std::string> line{"cp", "--hash", "xxh3", here("x"), here("y"), url("")};
  EXPECT_EQ(run_tool(line, command::output::broken).code, 0);
  EXPECT_EQ(content_of(there("x")), "1");
  EXPECT_EQ(content_of(there("y")), "2");
  std::filesystem::remove(there("x"));
  EXPECT_EQ(run_tool(line, command::output::full_disk).code, 9);
  EXPECT_EQ(content_of(there("x")), "1");
}

TEST_F(CopyHash, IsRefusedWhereItCanNotBeHad) {
  folder_.make("here/x", "1");
  expect_failure(run_tool({"cp", "--hash", "sha256", here("x"), here("y")}), 2,
                 "\"sha256\" is no hash that this program computes; xxh3 is");
  expect_failure(run_tool({"cp", "--direct", "--hash", "xxh3", url("x"), url("y")}), 2,
                 "ucxio hash");
  EXPECT_FALSE(std::filesystem::exists(here("y")));
}

}  // namespace
}  // namespace ucx::test
