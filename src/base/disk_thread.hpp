// Work that may wait for a disk, on a separate thread that delays no other work.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace ucx::detail {

/// The jobs that wait for one thread. The queue outlives the thread's owner where the disk hangs.
/// Safe from any thread. Its stages:
///
///     open        jobs are taken
///     finishing   waiting jobs are still done; `start_some_time` and `start_next` alone add more
///     left_behind the owner of the thread waits no longer: nothing is done or delivered any more
///     ended       the thread is over
///
///     from        to            when
///     open        finishing     begin_stop()
///     finishing   left_behind   stop() has waited long enough
///     finishing   ended         everything is done
///     left_behind ended         the job that hung is over
class disk_queue {
 public:
  /// The rest of a job, done where the caller lives once the disk has done its part.
  using answer = std::function<void()>;
  using work = std::function<answer()>;

  /// Takes an answer, or throws std::bad_alloc and leaves it.
  using delivery = std::function<void(answer&)>;

  /// `deliver` is called on the thread; never once `stop()` has returned. Where it has no memory it
  /// is called again, soon.
  disk_queue(std::size_t most, delivery deliver) : most_(most), deliver_(std::move(deliver)) {}

  /// Returns false, and does nothing, where too much waits already or nothing more is done.
  bool start(work job);
  /// As `start()`, but without the limit: for jobs that must be done, and that are bounded by other
  /// means.
  bool start_always(work job);
  /// As `start_always()`, but for a job without a waiting caller: it is done with the next one, or
  /// soon. It is taken as long as there is a thread. A thread that was left behind destroys it.
  bool start_some_time(work job);
  /// Of a job: what is to be done behind its answer, and before everything that waits. Returns
  /// false where nothing is done any more, or there is no memory for it.
  bool start_next(work job) noexcept;
  /// Of a job: its thread's owner is gone, and nothing of what it does is told any more.
  bool is_left_behind() noexcept;

 private:
  friend class disk_thread;
  enum class stage { open, finishing, left_behind, ended };
  /// The table above.
  static constexpr bool may_become(stage now, stage next) noexcept {
    return now < next && (now != stage::open || next == stage::finishing);
  }
  /// Goes on to `next`, unless it is there, or further.
  void reach(stage next) noexcept;
  bool add(work job, std::size_t most, bool wakes);
  void run();
  void deliver(std::unique_lock<std::mutex>& guard, answer done);
  void begin_stop() noexcept;
  bool stop(std::chrono::steady_clock::time_point until) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<work> waiting_;
  const std::size_t most_;
  delivery deliver_;
  bool awake_ = false;  // the thread looks at what waits, or is about to
  stage stage_ = stage::open;
};

/// The thread of one queue; first come, first served.
class disk_thread {
 public:
  /// Errors: std::system_error when there is no thread to be had.
  disk_thread(std::size_t most, disk_queue::delivery deliver);
  disk_thread(const disk_thread&) = delete;
  disk_thread& operator=(const disk_thread&) = delete;
  ~disk_thread();

  /// How long the end of a store waits for a disk.
  static constexpr std::chrono::seconds longest_farewell{2};
  /// Has what waits done, and nothing more taken.
  void begin_stop() noexcept { queue_->begin_stop(); }
  /// Has waiting jobs done, takes no more, and waits until `until` at most. A thread that hangs
  /// then is left behind, and nothing that it does is delivered. The destructor waits for
  /// `longest_farewell`.
  void stop(std::chrono::steady_clock::time_point until) noexcept;

  const std::shared_ptr<disk_queue>& queue() const noexcept { return queue_; }

 private:
  std::shared_ptr<disk_queue> queue_;
  std::thread thread_;
};

}  // namespace ucx::detail
