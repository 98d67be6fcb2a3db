// Files that somebody waits for to change their size.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/disk_thread.hpp"
#include "file/file_facts.hpp"
#include "file/file_source.hpp"

namespace ucx::detail {

/// Looks at files on a separate thread, which begins with the first that is to be looked at. It
/// looks at once when the system says that a file was written to (inotify). It also looks now and
/// then, because the system does not tell of all writers. Safe from any thread.
class file_watcher {
 public:
  /// Is told what the file is. Errors: io_error; timed_out never: a wait that is over is an answer.
  using seen = std::function<void(std::error_code, file_facts)>;

  /// How often a file is looked at that the system says nothing of. The first is for files that the
  /// system can not watch, the second for those that it watches, because another machine may write
  /// to them.
  static constexpr std::chrono::milliseconds unwatched_period{50};
  static constexpr std::chrono::milliseconds watched_period{1000};

  /// `deliver` is called on the thread; never once `stop()` has returned. Where it finds no memory,
  /// it is called again.
  explicit file_watcher(std::function<void(disk_queue::answer)> deliver,
                        std::chrono::milliseconds watched = watched_period);
  file_watcher(const file_watcher&) = delete;
  file_watcher& operator=(const file_watcher&) = delete;
  ~file_watcher();

  /// Has `then` delivered when the file does not have `known` bytes, at the latest when `wait` is
  /// over; at once where that is zero. Returns a number for `forget()`; 0 where there is no thread
  /// to be had, or any more.
  std::uint64_t look(std::shared_ptr<file_source> file, std::uint64_t known,
                     std::chrono::nanoseconds wait, seen then);
  /// Lets go of a file that nothing waits for any more: it is closed by then, unless it is just
  /// being looked at.
  void forget(std::uint64_t number) noexcept;

  /// Ends the thread; one that a disk keeps is left behind at `until`, and delivers nothing. No
  /// file is looked at from then on.
  void stop(std::chrono::steady_clock::time_point until) noexcept;

 private:
  class watch;  // what the thread has, which may outlive this
  std::mutex starting_;
  bool stopped_ = false;
  const std::shared_ptr<watch> watch_;
  std::thread thread_;
};

}  // namespace ucx::detail
