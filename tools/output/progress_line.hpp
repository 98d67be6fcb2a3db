// How far a command has come, told on the standard error stream while it works.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "output/cli_forward.hpp"
#include "output/transfer_counters.hpp"

namespace ucx::tool {

enum class progress_mode {
  automatic,  ///< A line where the standard error stream is a terminal, else nothing.
  json,       ///< An object a line, every second and at the end.
  none,
};

/// Adds `--progress`.
void add_progress(CLI::App& command, progress_mode& mode);

/// The numbers that are shown, at one moment.
struct progress_state {
  std::uint64_t bytes = 0;  ///< With those that were there already.
  std::uint64_t moved = 0;  ///< Without.
  std::uint64_t total = 0;
  std::uint64_t hashed = 0;  ///< To be compared.
  std::uint64_t files = 0;
  std::uint64_t total_files = 0;
  bool is_total_known = false;
  double seconds = 0;
  double rate = 0;     ///< Bytes in a second, lately.
  double average = 0;  ///< From the beginning on.
};

/// Returns a line of `width` columns at most: bytes, a bar, rates, and what time is left.
std::string progress_text(const progress_state& state, std::size_t width);
/// Returns the object, with a newline; its members are part of the tool's interface. `exit_code` is
/// that of work that has ended, as shells report it.
std::string progress_json(const progress_state& state, std::optional<int> exit_code);

/// Shows counters from another thread until the work has ended.
class progress_line {
 public:
  /// Where it may not be drawn, `automatic` shows nothing: the terminal has something else to show.
  progress_line(progress_mode mode, const transfer_counters& counters, bool may_be_drawn = true);
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  /// Shows the end, as of work that has failed, unless `end()` did.
  ~progress_line();

  bool is_shown() const noexcept { return shown_ != progress_mode::none; }
  static bool is_shown(progress_mode mode, bool may_be_drawn) noexcept;
  /// Counts the time from now on: what was before was waiting.
  void restart();
  /// Writes a line to the standard error stream, above what is shown.
  void say(std::string_view line);
  /// As say(), to the standard output. Errors: those of write_out.
  void print(std::string_view line);
  /// Shows the end, and which: the exit code of the work, as shells report it. Only the first call
  /// does anything. Safe from any thread.
  void end(int exit_code);

 private:
  void run(const std::stop_token& over);
  void show(std::optional<int> exit_code);
  progress_state look();
  bool draws() const noexcept { return shown_ == progress_mode::automatic; }

  const transfer_counters& counters_;
  const progress_mode shown_;  // none, too, where it may not be drawn
  std::chrono::steady_clock::time_point begin_;
  struct sample {
    std::chrono::steady_clock::time_point at;
    std::uint64_t moved = 0;
  };
  std::deque<sample> samples_;
  std::mutex mutex_;
  bool is_over_ = false;
  std::jthread thread_;
};

}  // namespace ucx::tool
