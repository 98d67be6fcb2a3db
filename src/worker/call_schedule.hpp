// Functions that a worker calls at a time, or in its rounds.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "base/clock.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

class worker_core;

/// One of them; shared by its handle and its schedule. Under the worker's lock, but for `over`.
struct scheduled {
  enum class stage { waiting, running, ended };

  std::weak_ptr<worker_core> worker;
  move_only_handler<> function;
  stage now = stage::waiting;
  bool repeats = false;
  bool canceled = false;
  std::atomic<bool> over{false};
  std::multimap<clock::time_point, std::shared_ptr<scheduled>>::iterator timer;
  bool is_timer = false;
};

/// Under the worker's lock, but for `has`.
class call_schedule {
 public:
  call_schedule() = default;
  call_schedule(const call_schedule&) = delete;
  call_schedule& operator=(const call_schedule&) = delete;

  void at(clock::time_point when, std::shared_ptr<scheduled> call);
  void in_progress(progress_phase when, std::shared_ptr<scheduled> call);

  /// Returns when the first timer is due.
  clock::time_point next() const noexcept;
  /// Takes out a timer that is due; nothing if none is.
  std::shared_ptr<scheduled> take_due(clock::time_point now);

  /// Returns whether a round has to call anything in this phase. From any thread.
  bool has(progress_phase when) const noexcept {
    return counts_[index(when)].load(std::memory_order_relaxed) > 0;
  }
  /// Returns whether something waits for the next round, whoever makes it.
  bool wants_round() const noexcept { return once_ > 0; }
  /// Returns what the round calls in this phase; those that are called once are taken out.
  void take(progress_phase when, std::vector<std::shared_ptr<scheduled>>& into);

  /// Takes a call back as far as it has not begun; returns whether that kept one from coming.
  bool cancel(scheduled& call);
  /// What is left of the calls at the end: destroys their functions, wherever it goes.
  struct ended {
    ended() = default;
    ended(ended&&) = default;
    ended& operator=(ended&&) = default;
    ~ended();
    std::multimap<clock::time_point, std::shared_ptr<scheduled>> timers;
    std::array<std::vector<std::shared_ptr<scheduled>>, 2> in_progress;
  };
  /// Ends everything: the worker goes, and nobody can take a call back any more.
  ended end() noexcept;

 private:
  static std::size_t index(progress_phase when) noexcept { return static_cast<std::size_t>(when); }

  std::multimap<clock::time_point, std::shared_ptr<scheduled>> timers_;
  std::array<std::vector<std::shared_ptr<scheduled>>, 2> in_progress_;
  std::array<std::atomic<std::size_t>, 2> counts_{};
  std::size_t once_ = 0;
};

}  // namespace ucx::detail
