// The thread of a worker in the modes that have one.
#pragma once

#include <atomic>
#include <list>
#include <thread>

#include "worker/departed_threads.hpp"

namespace ucx::detail {

class worker_core;

class progress_thread {
 public:
  explicit progress_thread(worker_core& worker) : worker_(worker), seat_(1) {}
  ~progress_thread() = default;
  progress_thread(const progress_thread&) = delete;
  progress_thread& operator=(const progress_thread&) = delete;

  /// Starts driving the worker. Errors: std::system_error when there is no thread to be had.
  void start();
  bool is_current() const noexcept { return std::this_thread::get_id() == id_.load(); }
  /// Stops the thread and waits for it. REQUIRES: another thread than it.
  void stop() noexcept;
  /// Called on the thread itself when the last reference to its worker went there: the loop ends,
  /// and the thread then destroys the worker.
  void leave_with_worker() noexcept;

 private:
  void loop();
  void poll();
  bool make_round();
  void sleep_and_spin();

  worker_core& worker_;
  std::atomic<bool> stopping_{false};
  bool owns_worker_ = false;
  departed_threads::ticket departing_;  // where it owns its worker
  std::atomic<std::thread::id> id_;
  std::list<departed_threads::departure> seat_;  // one; a list, to be handed over without failure
};

}  // namespace ucx::detail
