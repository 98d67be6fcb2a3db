// Functions that a worker calls at a time, or in its rounds.
#pragma once

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

class worker_core;

/// One of them; shared by its handle and its schedule. Under the worker's lock, but for `is_over`.
/// Its states:
///
///     from      to        when
///     waiting   running   it is called
///     waiting   over      it was taken back, or the worker goes
///     running   waiting   it was called, and will be again
///     running   last      it was taken back meanwhile
///     running   over      it was called, once
///     last      over      it was called
struct scheduled {
  using timers = std::multimap<clock::time_point, std::shared_ptr<scheduled>>;
  enum class state { waiting, running, last, over };

  state now() const noexcept { return state_.load(std::memory_order_relaxed); }
  bool is_running() const noexcept { return now() == state::running || now() == state::last; }
  /// From any thread.
  bool is_over() const noexcept { return state_ == state::over; }
  /// Returns whether its worker is that of a process that this one was forked from.
  bool is_inherited() const noexcept;
  void reach(state next) noexcept {
    assert(may_become(now(), next));
    state_ = next;
  }

  std::weak_ptr<worker_core> worker;
  move_only_handler<> function;
  bool repeats = false;
  clock::duration period{};               // of a timer that repeats
  bool is_due = false;                    // it was taken out, and its call has not ended
  std::optional<timers::iterator> timer;  // where it waits for a time

 private:
  /// The table above.
  static constexpr bool may_become(state from, state next) noexcept {
    switch (from) {
      case state::waiting:
        return next == state::running || next == state::over;
      case state::running:
        return next != state::running;
      case state::last:
        return next == state::over;
      case state::over:
        return false;
    }
    return false;
  }

  std::atomic<state> state_{state::waiting};
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
  /// Takes out a timer that is due; nothing if none is. One that repeats goes on to its next time.
  /// It is not returned while its last call has not ended.
  std::shared_ptr<scheduled> take_due(clock::time_point now);

  /// Returns whether a round has to call anything in this phase. From any thread.
  bool has(progress_phase when) const noexcept {
    return counts_[index(when)].load(std::memory_order_relaxed) > 0;
  }
  /// Returns whether something waits for the next round, on any thread.
  bool wants_round() const noexcept { return once_ > 0; }
  /// Returns what the round calls in this phase; those that are called once are taken out.
  void take(progress_phase when, std::vector<std::shared_ptr<scheduled>>& into);

  /// Takes a call back as far as it has not begun; returns whether that kept one from coming.
  bool cancel(scheduled& call);
  /// The calls that are left at the end: destroys their functions, wherever it goes.
  struct ended {
    ended() = default;
    ended(ended&&) = default;
    ended& operator=(ended&&) = default;
    ~ended();
    scheduled::timers timers;
    std::array<std::vector<std::shared_ptr<scheduled>>, 2> in_progress;
  };
  /// Ends everything: the worker goes, and no call can be taken back any more.
  ended end() noexcept;

 private:
  static std::size_t index(progress_phase when) noexcept { return static_cast<std::size_t>(when); }
  void move_first_behind(clock::time_point now) noexcept;

  scheduled::timers timers_;
  std::array<std::vector<std::shared_ptr<scheduled>>, 2> in_progress_;
  std::array<std::atomic<std::size_t>, 2> counts_{};
  std::size_t once_ = 0;
};

}  // namespace ucx::detail
