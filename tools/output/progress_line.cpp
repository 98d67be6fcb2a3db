#include "output/progress_line.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <nlohmann/json.hpp>

#include "output/exit_code.hpp"
#include "output/output.hpp"

namespace ucx::tool {
namespace {

using std::chrono::steady_clock;

constexpr std::chrono::milliseconds drawing_period{200};
constexpr std::chrono::milliseconds telling_period{1000};
/// The rate of now is that of so much time.
constexpr std::chrono::seconds window{3};
/// Removes the line from a terminal.
constexpr std::string_view cleared = "\r\x1b[K";

std::string bytes_text(double bytes) {
  constexpr const char* units[]{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} {}", bytes, units[unit])
                   : fmt::format("{:.1f} {}", bytes, units[unit]);
}

/// Returns the seconds that are left; nothing where they are not known.
std::optional<double> time_left(const progress_state& state) {
  if (!state.is_total_known || state.rate <= 0 || state.bytes > state.total) return std::nullopt;
  return static_cast<double>(state.total - state.bytes) / state.rate;
}

std::string time_text(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::min(seconds + 0.5, 3.6e6));
  if (whole >= 3600) {
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  }
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

/// Returns what became of work, as one word.
const char* outcome_of(int code) noexcept {
  constexpr int first_of_signals = 128;
  if (code == static_cast<int>(exit_code::ok)) return "done";
  if (code == static_cast<int>(exit_code::partial)) return "partial";
  return code > first_of_signals ? "interrupted" : "failed";
}

std::size_t terminal_width() noexcept {
  ::winsize size = {};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return is_known ? size.ws_col : 80;
}

}  // namespace

void add_progress(CLI::App& command, progress_mode& mode) {
  const std::map<std::string, progress_mode> names{{"auto", progress_mode::automatic},
                                                   {"json", progress_mode::json},
                                                   {"none", progress_mode::none}};
  command
      .add_option("--progress", mode,
                  "on stderr: auto (a line, where that is a terminal), json, or none")
      ->type_name("auto|json|none")
      ->transform(CLI::CheckedTransformer(names).description(""));
}

std::string progress_text(const progress_state& state, std::size_t width) {
  std::string begin = bytes_text(static_cast<double>(state.bytes));
  if (state.is_total_known) begin += " of " + bytes_text(static_cast<double>(state.total));
  if (state.total_files > 1) {
    begin += fmt::format("  {} of {} files", state.files, state.total_files);
  }
  if (state.hashed > 0) begin += "  hashed " + bytes_text(static_cast<double>(state.hashed));
  std::string end = bytes_text(state.rate) + "/s";
  const std::string average = fmt::format(" (avg {}/s)", bytes_text(state.average));
  const std::optional<double> left = time_left(state);
  const std::string eta = left ? "  ETA " + time_text(*left) : "";
  const std::size_t needed = begin.size() + end.size() + eta.size() + 4;
  std::string bar;
  if (state.is_total_known && state.total > 0 && needed + average.size() + 10 <= width) {
    const double part =
        std::min(1.0, static_cast<double>(state.bytes) / static_cast<double>(state.total));
    const std::string percent = fmt::format("{:3.0f}%", 100 * part);
    const std::size_t room =
        std::min<std::size_t>(width - needed - average.size() - percent.size() - 3, 40);
    const auto full = static_cast<std::size_t>(part * static_cast<double>(room));
    bar =
        fmt::format("  {} [{}{}]", percent, std::string(full, '#'), std::string(room - full, ' '));
  }
  if (needed + average.size() <= width) end += average;
  std::string line = begin + bar + "  " + end + eta;
  if (line.size() > width) line.resize(width);
  return line;
}

std::string progress_json(const progress_state& state, std::optional<int> exit_code) {
  nlohmann::ordered_json made{{"bytes", state.bytes}};
  const auto or_null = [](bool known, auto value) {
    return known ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
  };
  made["total_bytes"] = or_null(state.is_total_known, state.total);
  made["files"] = state.files;
  made["total_files"] = or_null(state.is_total_known, state.total_files);
  made["seconds"] = state.seconds;
  made["bytes_per_second"] = state.rate;
  made["average_bytes_per_second"] = state.average;
  const std::optional<double> left = time_left(state);
  made["seconds_left"] = or_null(left.has_value(), left.value_or(0));
  made["hashed_bytes"] = state.hashed;
  made["done"] = exit_code == static_cast<int>(tool::exit_code::ok);
  made["outcome"] = or_null(exit_code.has_value(), outcome_of(exit_code.value_or(0)));
  made["exit_code"] = or_null(exit_code.has_value(), exit_code.value_or(0));
  return made.dump() + '\n';
}

bool progress_line::is_shown(progress_mode mode, bool may_be_drawn) noexcept {
  if (mode == progress_mode::json) return true;
  return mode == progress_mode::automatic && may_be_drawn && ::isatty(STDERR_FILENO) == 1;
}

progress_line::progress_line(progress_mode mode, const transfer_counters& counters,
                             bool may_be_drawn)
    : counters_(counters),
      shown_(is_shown(mode, may_be_drawn) ? mode : progress_mode::none),
      begin_(steady_clock::now()) {
  if (is_shown()) thread_ = std::jthread([this](const std::stop_token& t) { run(t); });
}

progress_line::~progress_line() { end(static_cast<int>(exit_code::failure)); }

void progress_line::end(int exit_code) {
  const std::lock_guard guard(mutex_);
  if (!is_shown() || is_over_) return;
  is_over_ = true;
  thread_.request_stop();
  show(exit_code);
}

void progress_line::restart() {
  const std::lock_guard guard(mutex_);
  begin_ = steady_clock::now();
  samples_.clear();
}

void progress_line::run(const std::stop_token& over) {
  std::condition_variable_any waits;
  std::unique_lock guard(mutex_);
  const auto period = draws() ? drawing_period : telling_period;
  while (!waits.wait_for(guard, over, period, [] { return false; }) && !over.stop_requested()) {
    if (!is_over_) show(std::nullopt);
  }
}

progress_state progress_line::look() {
  const auto now = steady_clock::now();
  progress_state state;
  state.moved = counters_.bytes;
  state.bytes = state.moved + counters_.present;
  state.hashed = counters_.hashed;
  state.total = counters_.total_bytes;
  state.files = counters_.files;
  state.total_files = counters_.total_files;
  state.is_total_known = counters_.is_total_known;
  state.seconds = std::chrono::duration<double>(now - begin_).count();
  if (samples_.empty()) samples_.push_back({begin_, 0});
  samples_.push_back({now, state.moved});
  while (samples_.size() > 2 && now - samples_[1].at > window) samples_.pop_front();
  const double lately = std::chrono::duration<double>(now - samples_.front().at).count();
  const auto gone = static_cast<double>(state.moved - samples_.front().moved);
  state.rate = lately > 0 ? gone / lately : 0;
  state.average = state.seconds > 0 ? static_cast<double>(state.moved) / state.seconds : 0;
  return state;
}

void progress_line::show(std::optional<int> exit_code) {
  const progress_state state = look();
  if (shown_ == progress_mode::json) return tool::say(progress_json(state, exit_code));
  // The last column stays free: a terminal would begin a new line there.
  tool::say('\r' + progress_text(state, terminal_width() - 1) + "\x1b[K" + (exit_code ? "\n" : ""));
}

void progress_line::say(std::string_view line) {
  const std::lock_guard guard(mutex_);
  if (draws()) tool::say(cleared);
  tool::say(line);
}

void progress_line::print(std::string_view line) {
  const std::lock_guard guard(mutex_);
  if (draws()) tool::say(cleared);
  write_out(line);
}

}  // namespace ucx::tool
