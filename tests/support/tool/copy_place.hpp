// Where the tool's copies are tried: a store that may be written, and a directory here.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "support/bytes/byte_sizes.hpp"
#include "support/files/temporary_directory.hpp"
#include "support/process/command.hpp"
#include "support/tool/tool.hpp"

namespace ucx::test {

/// Returns the names of what is in a directory.
inline std::vector<std::string> names_in(const std::filesystem::path& directory) {
  std::vector<std::string> names;
  for (const auto& each : std::filesystem::directory_iterator(directory)) {
    names.push_back(each.path().filename().string());
  }
  return names;
}

/// Returns bytes that become much shorter.
inline std::string log_text(std::size_t size) {
  std::string all;
  while (all.size() < size) all += "line " + std::to_string(all.size()) + " of a log\n";
  all.resize(size);
  return all;
}

class copy_place : public ::testing::Test {
 protected:
  copy_place() { std::filesystem::create_directories(folder_ / "here"); }

  std::string here(const std::string& name) const { return (folder_ / ("here/" + name)).string(); }
  std::string there(const std::string& name) const { return (store_ / name).string(); }
  std::string url(const std::string& name) const { return server_.url(name); }

  /// Expects that it went well, quietly.
  void copy(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "cp");
    const command_result result = run_tool(arguments);
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.out, "");
  }

  const temporary_directory folder_;
  const temporary_directory store_;
  tool_server server_{{"--store", (store_ / "").string(), "--writable"}};
};

}  // namespace ucx::test
