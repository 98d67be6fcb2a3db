// A program that a test runs to its end, as a shell does: arguments in, exit code and output out.
#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "support/files/temporary_directory.hpp"

namespace ucx::test {

/// How a program ended. Every wait is bounded; one that did not end in time was killed.
struct command_result {
  bool in_time = false;
  int code = -1;    ///< Its exit code; -1 when a signal ended it.
  int signal = 0;   ///< That signal.
  std::string out;  ///< What it wrote to the standard output, unless that went elsewhere.
  std::string err;
  /// The most memory that it had, in bytes, some milliseconds before its end.
  std::size_t peak_memory = 0;
};

class command {
 public:
  /// Where the standard output goes: to `out` of the result by default.
  /// `stuck` is a pipe without any room, which nobody reads; `broken` one whose reader has gone.
  enum class output { kept, closed, full_disk, pipe, stuck, broken };

  /// The standard error stream may go to the same places, but for `pipe`; to `err` by default.
  command(const std::string& program, const std::vector<std::string>& arguments,
          output where = output::kept, output errors = output::kept);
  command(const command&) = delete;
  command& operator=(const command&) = delete;
  /// Kills it if it still runs.
  ~command();

  pid_t pid() const noexcept { return pid_; }
  void send_signal(int signal) const;

  /// Reads from the standard output, of `output::pipe`, until there are `count` bytes or it ends.
  std::string read(std::size_t count, std::chrono::nanoseconds limit = std::chrono::seconds(30));
  /// Stops reading that for good.
  void close_pipe();

  /// Returns what it has written to the standard error stream so far, if that is kept.
  std::string errors() const;

  /// Waits for the end, and reads what is left in the pipe meanwhile.
  command_result finish(std::chrono::nanoseconds limit = std::chrono::seconds(30));

 private:
  int connect(output where, int descriptor, const char* file,
              ::posix_spawn_file_actions_t& actions);

  temporary_directory folder_;
  std::vector<int> ours_;  // ends of pipes that are neither read nor written
  pid_t pid_ = -1;
  int pipe_ = -1;
  std::optional<int> status_;
  std::size_t peak_memory_ = 0;
};

}  // namespace ucx::test
