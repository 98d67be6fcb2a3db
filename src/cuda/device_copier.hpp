// Copies by the CUDA driver.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "cuda/cuda_context.hpp"
#include "cuda/device_copy.hpp"

namespace ucx::detail {

/// Has a separate stream in one context, so that a copy waits for no work of the program's. Has a
/// thread while there is something to copy. A call of the driver's that does not return, because a
/// device hangs, thus delays no other thread. Threads: sharing one object is safe.
class device_copier : public std::enable_shared_from_this<device_copier> {
 public:
  /// Errors: no_memory, not_supported, io_error.
  static result<std::shared_ptr<device_copier>> make(std::shared_ptr<const cuda_context> context);
  device_copier(const device_copier&) = delete;
  device_copier& operator=(const device_copier&) = delete;
  ~device_copier();

  /// Has the thread do `wanted`, behind what was started before. Errors: closed, no_memory, busy
  /// (no thread to be had); then nothing is done. Errors of the copy: io_error (the driver's:
  /// memory that was freed), no_memory, closed, canceled (no caller wanted it any more).
  std::error_code start(std::shared_ptr<device_copy> wanted) noexcept;
  /// Does it and waits for it, until `until`; then it may still happen. Errors: the same,
  /// timed_out.
  std::error_code copy(std::shared_ptr<const void> keeps, void* device, std::span<std::byte> host,
                       bool into_device, std::shared_ptr<const stream_mark> after,
                       clock::time_point until);

  /// Sets bytes of a device's to zero and waits for that, until `until`; then it may still happen.
  /// `keeps` is kept until the driver has let go. Errors: as copy().
  std::error_code clear(std::shared_ptr<const void> keeps, std::span<std::byte> bytes,
                        clock::time_point until);

  const std::shared_ptr<const cuda_context>& context() const noexcept { return context_; }
  /// Returns whether a copy has failed: its context may be over.
  bool failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  /// Begins no further copy, and gives stream and events back when those that run are over: waits
  /// for that until `until`. Returns whether it is so. Else the thread gives them back at its end.
  bool close(std::chrono::steady_clock::time_point until) noexcept;

 private:
  /// So many are in the driver's hands at a time: it has the next one when one is over.
  static constexpr std::size_t most_begun = 4;
  /// How long the thread waits for another copy before it ends.
  static constexpr std::chrono::seconds longest_idle{1};
  struct begun_copy {
    std::shared_ptr<device_copy> copy;
    cuda::event event = nullptr;
    cuda::result result = cuda::not_ready;  ///< The driver's last answer about the event.
  };

  explicit device_copier(std::shared_ptr<const cuda_context> context)
      : context_(std::move(context)) {}
  void start_thread();
  void serve() noexcept;
  begun_copy begin(std::shared_ptr<device_copy> wanted) noexcept;
  cuda::result enqueue(const device_copy& wanted, cuda::event event, bool& enqueued) noexcept;
  bool look_at(begun_copy& begun) noexcept;
  void finish(begun_copy& begun) noexcept;
  void release() noexcept;
  std::error_code error_of(cuda::result result) noexcept;

  const std::shared_ptr<const cuda_context> context_;
  // A child that is forked has the lock as it was, and no thread.
  const ::pid_t process_ = ::getpid();
  cuda::stream stream_ = nullptr;
  std::atomic<bool> failed_{false};
  // The thread's, with room for as many as there may be: it needs no memory.
  std::vector<cuda::event> events_;  // idle ones
  std::vector<begun_copy> begun_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<device_copy>> waiting_;
  std::thread::id thread_;  // whose, while it runs
  bool closed_ = false;
  bool released_ = false;
};

/// Returns the number by which the driver knows a pointer.
cuda::address address_of(const void* pointer) noexcept;

}  // namespace ucx::detail
