// Hashes of files, for peers who want to know what is in them and not have it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include "base/disk_thread.hpp"
#include "file/file_source.hpp"
#include "ucx/content_digest.hpp"

namespace ucx::detail {

/// Reads on a separate thread, which begins with the first question. It does a little of each in
/// turn, so that no question waits for another one's large file. Safe from any thread.
class file_hasher {
 public:
  /// Bytes of a turn.
  static constexpr std::size_t turn = std::size_t{8} << 20U;
  /// Questions that wait for the thread; further ones are refused.
  static constexpr std::size_t most_waiting = 1024;

  /// Errors: those of file_source::read; no_memory.
  using hashed = std::function<void(std::error_code, std::vector<content_digest>)>;
  /// One that was asked; it is destroyed when it has left the queue, and no other owner is left.
  class question;
  using asked = std::shared_ptr<question>;

  /// `deliver` is called on the thread, never once `stop()` has returned; again where it has no
  /// memory.
  explicit file_hasher(disk_queue::delivery deliver) : deliver_(std::move(deliver)) {}
  file_hasher(const file_hasher&) = delete;
  file_hasher& operator=(const file_hasher&) = delete;

  /// Hashes `length` bytes from `offset` on, each `chunk` of them by itself, and has `then`
  /// delivered. Returns nothing where there is no thread to be had, or too much waits.
  /// REQUIRES: `length` and `chunk` are not 0.
  asked start(std::shared_ptr<file_source> file, std::uint64_t offset, std::uint64_t length,
              std::uint64_t chunk, hashed then);
  /// Ends a question, which is not answered then, and lets go of the file: at once, unless that is
  /// being read. Safe from where answers are delivered only.
  static void withdraw(question& unwanted) noexcept;

  /// Ends the thread; one that a disk keeps is left behind at `until`.
  void stop(std::chrono::steady_clock::time_point until) noexcept;

 private:
  disk_queue::delivery deliver_;
  std::mutex mutex_;
  bool stopped_ = false;
  std::optional<disk_thread> thread_;
};

}  // namespace ucx::detail
