// The command line tool, as the tests of it use it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "support/process/child_process.hpp"
#include "support/process/command.hpp"
#include "support/transports/network.hpp"

namespace ucx::test {

/// What the tool ends with where a peer or its answer was lost.
inline constexpr int lost = 7;

/// The tool of the same build; or another, such as one with a sanitizer, by $UCXIO_TOOL.
inline std::string tool_program() {
  const char* const other = std::getenv("UCXIO_TOOL");
  return other != nullptr ? other : sibling_program("ucxio");
}

/// Runs `ucxio` with `arguments` to its end.
inline command_result run_tool(const std::vector<std::string>& arguments,
                               command::output where = command::output::kept) {
  return command(tool_program(), arguments, where).finish();
}

/// Expects that it ended with `code` and nothing on stdout, having said why in one line that holds
/// `words`.
inline void expect_failure(const command_result& result, int code, const std::string& words) {
  EXPECT_TRUE(result.in_time);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.code, code) << result.err;
  EXPECT_TRUE(result.err.starts_with("ucxio: ")) << result.err;
  EXPECT_EQ(result.err.find('\n'), result.err.size() - 1) << result.err;
  EXPECT_THAT(result.err, ::testing::HasSubstr(words));
}

/// `ucxio serve`, from its first line to the end of the test.
class tool_server {
 public:
  explicit tool_server(const std::vector<std::string>& files)
      : process_(tool_program(), line(files)) {
    const std::optional<std::string> first = process_.read_line(patience(std::chrono::seconds(30)));
    EXPECT_TRUE(first.has_value()) << "the server did not start";
    url_ = first.value_or("");
  }

  child_process& process() noexcept { return process_; }
  const std::string& url() const noexcept { return url_; }
  /// Returns the URL of a name, which has to be encoded.
  std::string url(const std::string& name) const { return url_ + '/' + name; }

 private:
  static std::vector<std::string> line(const std::vector<std::string>& files) {
    std::vector<std::string> arguments{"serve", "--quiet"};
    const auto says = [&](const char* word) {
      return std::ranges::find(files, word) != files.end();
    };
    if ((goes_over_verbs() || says("--address-file")) && !says("--ucx")) {
      arguments.emplace_back("--ucx");
    }
    if (goes_over_verbs() && !says("--bind"))
      arguments.insert(arguments.end(), {"--bind", at_port(), "--insecure"});
    arguments.insert(arguments.end(), files.begin(), files.end());
    return arguments;
  }

  child_process process_;
  std::string url_;
};

}  // namespace ucx::test
