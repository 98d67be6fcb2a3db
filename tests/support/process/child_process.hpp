// A child process that a test talks to by lines, and that never outlives the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace ucx::test {

/// Returns the path of a program that lies beside the running one.
std::string sibling_program(const std::string& name);

class child_process {
 public:
  /// Starts `program`; its standard input and output are connected to this object.
  explicit child_process(const std::string& program,
                         const std::vector<std::string>& arguments = {});
  child_process(child_process&& other) noexcept;
  child_process& operator=(child_process&& other) = delete;
  /// Kills the child if it still runs.
  ~child_process();

  pid_t pid() const noexcept { return pid_; }

  void write_line(const std::string& line);
  /// Returns the next line, or nothing when the child says none in time or has ended.
  std::optional<std::string> read_line(std::chrono::nanoseconds limit);

  void send_signal(int signal) const;
  /// Sends SIGSTOP, and returns when the child has really stopped.
  void stop();
  /// Returns whether the child has stopped by its own doing within `limit`.
  bool has_stopped_within(std::chrono::nanoseconds limit);
  void resume() const;
  /// Sends SIGKILL and returns when the child is gone.
  void kill();
  /// Returns whether the child has not ended.
  bool running();
  /// Waits for the child's end, and returns its status as waitpid tells it; nothing if it goes on.
  std::optional<int> wait(std::chrono::nanoseconds limit);

 private:
  pid_t pid_ = -1;
  int channel_ = -1;  // the child's standard input and output
  std::string unread_;
  std::optional<int> status_;
};

}  // namespace ucx::test
