#include "server/audit_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <new>
#include <system_error>

#include "base/logger.hpp"
#include "base/name.hpp"
#include "base/owned_descriptor.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr std::chrono::seconds between_looks_at_path{1};
/// No error of the system: the thread is behind.
constexpr int too_slow = -1;

/// A pipe without a reader is an error, and not waited for.
owned_descriptor open_audit(const std::filesystem::path& file) noexcept {
  owned_descriptor opened(::open(
      file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600));
  if (opened) ::fcntl(opened.get(), F_SETFL, O_APPEND);
  return opened;
}

std::string time_now() {
  std::timespec now = {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  std::tm parts = {};
  ::gmtime_r(&now.tv_sec, &parts);
  std::array<char, 32> text = {};
  const std::size_t length = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  std::array<char, 16> rest = {};
  const unsigned milliseconds = static_cast<unsigned>(now.tv_nsec / 1'000'000) % 1000U;
  std::snprintf(rest.data(), rest.size(), ".%03uZ", milliseconds);
  return std::string(text.data(), length) + rest.data();
}

void put_escape(std::string& made, unsigned unit) {
  std::array<char, 8> text = {};
  std::snprintf(text.data(), text.size(), "\\u%04x", unit & 0xffffU);
  made += text.data();
}

/// Takes a letter of valid UTF-8 off the beginning.
char32_t take_letter(std::string_view& text) noexcept {
  const auto first = static_cast<unsigned char>(text.front());
  const std::size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  char32_t letter = size == 1 ? first : first & (0x7fU >> size);
  for (std::size_t i = 1; i < size; ++i) {
    letter = letter << 6U | (static_cast<unsigned char>(text[i]) & 0x3fU);
  }
  text.remove_prefix(size);
  return letter;
}

void put_letter(std::string& made, char32_t letter) {
  if (letter == '"' || letter == '\\') made += '\\';
  if (letter >= 0x20 && letter < 0x7f) {
    made += static_cast<char>(letter);
  } else if (letter < 0x10000) {
    put_escape(made, letter);
  } else {
    put_escape(made, 0xd800U + ((letter - 0x10000U) >> 10U));
    put_escape(made, 0xdc00U + ((letter - 0x10000U) & 0x3ffU));
  }
}

}  // namespace

std::string json_text(std::string_view text) {
  constexpr char32_t replacement = 0xfffd;
  std::string made = "\"";
  while (!text.empty()) {
    std::string_view valid = text.substr(0, valid_utf8(text));
    text.remove_prefix(valid.size());
    while (!valid.empty()) put_letter(made, take_letter(valid));
    if (text.empty()) break;
    put_letter(made, replacement);
    text.remove_prefix(1);
  }
  return made += '"';
}

struct audit_file::state {
  explicit state(std::filesystem::path at) : path(std::move(at)) {}

  void append(const std::string& all, std::uint64_t lines) noexcept;
  void look_at_path() noexcept;
  bool put(std::string_view text) noexcept;

  const std::filesystem::path path;
  std::atomic<std::uint64_t> lost{0};
  std::atomic<std::size_t> waiting{0};  // lines
  std::atomic<int> complaint{0};        // of the system, that the log does not have yet
  // The thread's.
  owned_descriptor descriptor;
  std::chrono::steady_clock::time_point looked = {};
  bool is_broken = false;  // the last line is not whole
  bool is_failing = false;
};

/// The file may have been moved away, to be kept.
void audit_file::state::look_at_path() noexcept {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked < between_looks_at_path) return;
  looked = now;
  struct ::stat there = {};
  struct ::stat ours = {};
  if (::fstat(descriptor.get(), &ours) != 0) return;
  const bool is_there = ::stat(path.c_str(), &there) == 0;
  if (is_there && there.st_dev == ours.st_dev && there.st_ino == ours.st_ino) return;
  if (owned_descriptor opened = open_audit(path)) {
    descriptor = std::move(opened);
    is_broken = false;
  }
}

bool audit_file::state::put(std::string_view text) noexcept {
  while (!text.empty()) {
    const ::ssize_t written = ::write(descriptor.get(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      if (!is_failing) complaint.store(written < 0 ? errno : ENOSPC);
      is_failing = true;
      return false;
    }
    is_broken = static_cast<std::size_t>(written) != text.size();
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  is_failing = false;
  return true;
}

void audit_file::state::append(const std::string& all, std::uint64_t lines) noexcept {
  look_at_path();
  const std::uint64_t missing = lost.exchange(0);
  try {
    std::string text = is_broken ? "\n" : "";
    if (missing != 0) {
      text += "{\"time\":" + json_text(time_now()) +
              ",\"event\":\"lost\",\"lines\":" + std::to_string(missing) + "}\n";
    }
    text += all;
    if (put(text)) return;
  } catch (const std::bad_alloc&) {  // it is lost
  }
  lost.fetch_add(missing + lines);
}

result<std::shared_ptr<audit_file>> audit_file::make(const std::filesystem::path& file,
                                                     logger& log) {
  owned_descriptor opened = open_audit(file);
  if (!opened) {
    const int number = errno;
    const errc code = number == ENOENT ? errc::no_such_name : from_errno(number);
    return failure{code, "opening the file of the audit, " + file.string() + ": " +
                             std::generic_category().message(number)};
  }
  return std::make_shared<audit_file>(std::filesystem::absolute(file), opened.release(), log);
}

audit_file::audit_file(const std::filesystem::path& file, int descriptor, logger& log)
    : log_(log),
      state_(std::make_shared<state>(file)),
      thread_(most_waiting, [](disk_queue::answer&) {}) {
  state_->descriptor = owned_descriptor(descriptor);
}

/// Returns false for one of too many; `untold` is how many of those were before one that is told.
bool audit_file::may_tell_of(const std::string& who, std::uint64_t& untold) {
  constexpr std::size_t most_windows = 1024;
  const auto now = std::chrono::steady_clock::now();
  const auto is_over = [&](const window& each) {
    return now - each.since > std::chrono::seconds(1);
  };
  const std::lock_guard guard(mutex_);
  if (windows_.size() > most_windows) {
    std::erase_if(windows_, [&](const auto& each) { return is_over(each.second); });
  }
  window& its = windows_[who];
  if (is_over(its)) {
    its.since = now;
    its.told = 0;
  }
  if (++its.told > (who.empty() ? most_of_strangers : most_of_identity)) {
    ++its.untold;
    return false;
  }
  untold = std::exchange(its.untold, 0);
  return true;
}

bool audit_file::has_room(weight of, const share* by) const noexcept {
  const std::size_t parts = of == weight::change ? 1 : 2;
  if (state_->waiting.load() >= most_waiting / parts) return false;
  return by == nullptr || by->waiting.load() < most_of_one / parts;
}

bool audit_file::start(std::string text, std::size_t lines, const std::shared_ptr<share>& by) {
  state_->waiting += lines;
  if (by) by->waiting += lines;
  const auto gone = [of = state_, by, lines] {
    of->waiting -= lines;
    if (by) by->waiting -= lines;
  };
  try {
    if (thread_.queue()->start([of = state_, text = std::move(text), lines, gone] {
          of->append(text, lines);
          gone();
          return disk_queue::answer();
        })) {
      return true;
    }
  } catch (const std::bad_alloc&) {  // it is lost
  }
  gone();
  return false;
}

/// On the caller's thread: that of the disk may be late for the end of the log.
void audit_file::complain() noexcept {
  const int number = state_->complaint.exchange(0);
  if (number == 0) return;
  try {
    log_.write(log_level::error,
               "lines of the audit are lost: " + state_->path.string() + ": " +
                   (number == too_slow ? std::string("the disk is too slow")
                                       : std::generic_category().message(number)));
  } catch (const std::bad_alloc&) {  // the next line of the audit tells, too
  }
}

void audit_file::write(std::initializer_list<field> fields) noexcept {
  try {
    const line one(fields);
    write(std::span(&one, 1), weight::change, nullptr);
  } catch (const std::bad_alloc&) {
    state_->lost.fetch_add(1);
  }
}

void audit_file::write(std::span<const line> lines, weight of,
                       const std::shared_ptr<share>& by) noexcept {
  complain();
  try {
    std::uint64_t untold = 0;
    if (of == weight::limited && by && !may_tell_of(by->who, untold)) return;
    if (has_room(of, by.get())) {
      const std::uint64_t missing = by ? by->lost.exchange(0) : 0;
      std::string text;
      for (const line& each : lines) {
        text += "{\"time\":" + json_text(time_now());
        for (const auto& [name, value] : each) {
          if (!value.empty()) text += ",\"" + std::string(name) + "\":" + json_text(value);
        }
        if (untold != 0) text += ",\"untold\":" + std::to_string(std::exchange(untold, 0));
        if (missing != 0 && &each == lines.data()) text += ",\"lost\":" + std::to_string(missing);
        text += "}\n";
      }
      if (start(std::move(text), lines.size(), by)) return;
      if (by) by->lost += missing;
    }
    int none = 0;
    state_->complaint.compare_exchange_strong(none, too_slow);
  } catch (const std::bad_alloc&) {  // they are lost
  }
  (by ? by->lost : state_->lost).fetch_add(lines.size());
}

void audit_file::add_lost(std::uint64_t lines) noexcept { state_->lost.fetch_add(lines); }

}  // namespace ucx::detail
