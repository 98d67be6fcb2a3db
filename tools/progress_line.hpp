// How far a command has come, told on the standard error stream while it works.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "cli_forward.hpp"
#include "transfer_counters.hpp"

namespace ucx::tool {

enum class progress_mode {
  automatic,  ///< A line where the standard error stream is a terminal, else nothing.
  json,       ///< An object a line, every second and at the end.
  none,
};

/// Adds `--progress`.
void add_progress(CLI::App& command, progress_mode& mode);

/// What is shown, at one moment.
struct progress_state {
  std::uint64_t bytes = 0;  ///< With those that were there already.
  std::uint64_t moved = 0;  ///< Without.
  std::uint64_t total = 0;
  std::uint64_t files = 0;
  std::uint64_t total_files = 0;
  bool is_total_known = false;
  double seconds = 0;
  double rate = 0;     ///< Bytes in a second, lately.
  double average = 0;  ///< From the beginning on.
};

/// Returns a line of `width` columns at most: bytes, a bar, rates, and what time is left.
std::string progress_text(const progress_state& state, std::size_t width);
/// Returns the object, with a newline; its members are part of the tool's interface.
std::string progress_json(const progress_state& state, bool is_over);

/// Shows counters from another thread until it is destroyed.
class progress_line {
 public:
  progress_line(progress_mode mode, const transfer_counters& counters);
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  /// Shows the end.
  ~progress_line();

  /// Writes a line to the standard error stream, above what is shown.
  void say(std::string_view line);

 private:
  void run(const std::stop_token& over);
  void show(bool is_over);
  progress_state look();

  const transfer_counters& counters_;
  const bool draws_;  // on a terminal
  const bool tells_;  // as JSON
  const std::chrono::steady_clock::time_point begin_;
  struct sample {
    std::chrono::steady_clock::time_point at;
    std::uint64_t moved = 0;
  };
  std::deque<sample> samples_;
  std::mutex mutex_;
  std::jthread thread_;
};

}  // namespace ucx::tool
