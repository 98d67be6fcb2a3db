// A copy between memory of a device and a staging buffer that somebody at a worker waits for.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "base/inbox_task.hpp"
#include "cuda/device_copy.hpp"
#include "cuda/staging_buffer.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Ends under the worker's lock, in a round, for which a worker that sleeps is woken; or, where the
/// worker has gone, without a word.
class worker_copy : public device_copy,
                    public inbox_task,
                    public std::enable_shared_from_this<worker_copy> {
 public:
  worker_copy(worker_core& worker, staging_buffer through) noexcept
      : buffer(std::move(through)), worker_(worker.weak_from_this()) {
    staging = &buffer;
  }

  staging_buffer buffer;

  /// Nothing waits for it any more: it need not happen, and what it has ended is not told.
  void abandon() noexcept { wanted_.store(false, std::memory_order_relaxed); }
  bool wanted() const noexcept final { return wanted_.load(std::memory_order_relaxed); }

  void done() noexcept final {
    copied();
    if (const std::shared_ptr<worker_core> worker = worker_.lock()) {
      worker->hand_over(shared_from_this());
    }
  }
  void run(worker_core& by) final {
    if (wanted_.exchange(false, std::memory_order_relaxed)) arrived();
    by.staging_shelf().put_back(std::move(buffer));
  }

 protected:
  /// On the copier's thread.
  virtual void copied() noexcept {}
  /// It has ended, and is wanted still: `error` says how. Called once. `buffer` is put back
  /// afterwards, unless it was moved away.
  virtual void arrived() = 0;

 private:
  const std::weak_ptr<worker_core> worker_;
  std::atomic<bool> wanted_{true};
};

}  // namespace ucx::detail
