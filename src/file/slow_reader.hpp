// Reads of files that may have to wait for a disk, where they delay no other work.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>
#include <thread>
#include <vector>

#include "base/inbox_task.hpp"
#include "cuda/staging_buffer.hpp"
#include "file/file_source.hpp"

namespace ucx::detail {

class file_answer;
class file_service;

/// One such read. It owns file and buffer, so that the caller may be gone before it ends.
struct slow_read final : inbox_task {
  std::shared_ptr<file_source> file;
  std::uint64_t offset = 0;
  staging_buffer buffer;
  std::span<std::byte> into;  ///< The part of `buffer` that is missing.
  std::error_code error;
  std::atomic<bool> unwanted{false};  ///< It need not happen any more.

  // Under the worker's lock.
  file_service* service = nullptr;
  file_answer* answer = nullptr;  ///< It waits for this read; null, once the read is unwanted.
  std::size_t slot = 0;           ///< Where the answer keeps it.
  void run(worker_core& by) override;
};

class slow_reader {
 public:
  using handler = std::function<void(std::shared_ptr<slow_read>)>;

  slow_reader() noexcept = default;
  slow_reader(const slow_reader&) = delete;
  slow_reader& operator=(const slow_reader&) = delete;
  virtual ~slow_reader() = default;

  /// Does the read, unless it becomes unwanted, and hands it to the handler.
  virtual void start(std::shared_ptr<slow_read> read) = 0;
  /// Takes out the reads that became unwanted before they began; the handler does not get them.
  virtual std::vector<std::shared_ptr<slow_read>> take_unwanted() { return {}; }
};

/// One thread, first come, first served.
class reading_thread final : public slow_reader {
 public:
  /// `done` is called on the thread. Errors: std::system_error when there is no thread to be had.
  explicit reading_thread(handler done);
  /// Forgets the reads that were not begun, and waits for the one that runs, but not for ever. One
  /// that hangs is left behind, and `done` will not be called for it.
  ~reading_thread() override;

  void start(std::shared_ptr<slow_read> read) override;
  std::vector<std::shared_ptr<slow_read>> take_unwanted() override;

 private:
  /// Outlives the object if the thread does.
  struct queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<slow_read>> waiting;
    handler done;
    bool stopping = false;
    bool ended = false;
  };
  static void run(queue& work);

  std::shared_ptr<queue> queue_;
  std::thread thread_;
  std::deque<std::shared_ptr<slow_read>> forgotten_;  // at the end
};

}  // namespace ucx::detail
