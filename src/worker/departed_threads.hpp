// Progress threads that end by themselves, and the end of the process, which waits for them.
#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>

namespace ucx::detail {

/// Keeps the threads that no other thread can join: each of them destroys the worker whose last
/// reference went on it. The process's exit waits for them, 10 s at most: what is destroyed then,
/// by UCX for one, must not be in use any more.
class departed_threads {
 public:
  struct departure {
    std::thread thread;
    bool over = false;
  };
  using ticket = std::list<departure>::iterator;

  /// The one of the process. The first call arranges for the wait at exit. Errors: std::bad_alloc.
  static departed_threads& instance();

  departed_threads() = default;
  departed_threads(const departed_threads&) = delete;
  departed_threads& operator=(const departed_threads&) = delete;

  /// Takes over `leaving`, which is one thread; joins those that are over.
  ticket add(std::list<departure> leaving) noexcept;
  /// The last call that a thread makes.
  void end(ticket departing) noexcept;
  /// Joins all but the calling thread; gives up after `limit`.
  void wait(std::chrono::nanoseconds limit) noexcept;

 private:
  void join_ended() noexcept;

  std::mutex mutex_;
  std::condition_variable ended_;
  std::list<departure> departing_;
};

}  // namespace ucx::detail
