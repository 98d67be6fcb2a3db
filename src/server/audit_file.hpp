// The file that a server's audit goes to: docs/reference/rules.md, "Audit".
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/disk_thread.hpp"
#include "base/result.hpp"

namespace ucx::detail {

class logger;

/// Appends lines of JSON on a separate thread. Callers do not wait for a disk that is full or
/// hangs. Lines
/// that it has no time or room for are counted; the next line and the log tell. A file that was
/// moved away is made anew. Safe from any thread.
class audit_file {
 public:
  /// So many lines may wait for the disk.
  static constexpr std::size_t most_waiting = 4096;
  /// Of these, so many of one connection. Half of either is for changes alone.
  static constexpr std::size_t most_of_one = 512;
  /// So many limited lines of a second are of strangers, and of each other peer.
  static constexpr unsigned most_of_strangers = 10;
  static constexpr unsigned most_of_identity = 100;

  using field = std::pair<std::string_view, std::string>;
  using line = std::vector<field>;
  /// Limited: there may be very many. A change is left out last.
  enum class weight { limited, usual, change };
  /// The part of one connection.
  struct share {
    std::string who = {};                 ///< Empty for a stranger.
    std::atomic<std::size_t> waiting{0};  ///< Lines.
    std::atomic<std::uint64_t> lost{0};   ///< Lines that were too many; its next line tells.
  };

  /// Errors: those of opening the file. REQUIRES: `log` outlives this.
  static result<std::shared_ptr<audit_file>> make(const std::filesystem::path& file, logger& log);
  audit_file(const std::filesystem::path& file, int descriptor, logger& log);

  /// Writes a line with the time and these fields, in their order, whatever bytes they have. Empty
  /// fields are left out.
  void write(std::initializer_list<field> fields) noexcept;
  /// Writes the lines of one question of a connection, together or not at all.
  void write(std::span<const line> lines, weight of, const std::shared_ptr<share>& by) noexcept;
  /// So many lines of a connection are missing that will not tell so itself: the file tells.
  void add_lost(std::uint64_t lines) noexcept;

 private:
  struct state;  // what the thread has, which may outlive this

  struct window {
    std::chrono::steady_clock::time_point since = {};
    unsigned told = 0;         // since then
    std::uint64_t untold = 0;  // likewise, all
  };

  bool may_tell_of(const std::string& who, std::uint64_t& untold);
  bool has_room(weight of, const share* by) const noexcept;
  bool start(std::string text, std::size_t lines, const std::shared_ptr<share>& by);
  void complain() noexcept;

  logger& log_;
  const std::shared_ptr<state> state_;
  disk_thread thread_;
  std::mutex mutex_;
  std::map<std::string, window> windows_;  // of limited lines, by who they are of
};

/// Returns `text` between quotes, in ASCII, as JSON has it. Other bytes than UTF-8 are U+FFFD.
std::string json_text(std::string_view text);

}  // namespace ucx::detail
