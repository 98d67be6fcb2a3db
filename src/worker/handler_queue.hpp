// Users' code that is due: handlers of operations, posted functions, what is told of
// connections, accept handlers.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/push_back_reserved.hpp"
#include "ucx/completion_handler.hpp"
#include "worker/worker_lock.hpp"

namespace ucx::detail {

struct arrived_message;
class operation;
class worker_core;
class worker_parts;

/// Runs in order and one after the other, on whichever thread makes a round, and never under the
/// worker's lock. Users' code may take other locks, and start operations of other workers.
/// Everything here happens under the worker's lock, but for the calls themselves.
class handler_queue {
 public:
  /// `report` gets what handlers throw; without one the process ends.
  explicit handler_queue(std::function<void(std::exception_ptr)> report = {})
      : report_(
            std::make_shared<const std::function<void(std::exception_ptr)>>(std::move(report))) {}
  handler_queue(const handler_queue&) = delete;
  handler_queue& operator=(const handler_queue&) = delete;
  ~handler_queue() = default;

  /// Lets go of what is due, which never runs. Handlers are destroyed without the lock. Before the
  /// end. REQUIRES: `guard` is the only hold of this thread on the lock.
  void drop(std::unique_lock<worker_lock>& guard) noexcept;
  /// Makes room for the handler of an operation that is to end: its `add` needs no memory.
  void expect() {
    make_room();
    ++expected_;
  }
  /// Takes an `expect()` back.
  void forgo() noexcept { --expected_; }
  /// Makes the room that the next `expect()` needs, or so many calls of `add()`.
  void make_room(std::size_t count = 1);
  /// Queues the handler of `ended`, which lives until it has run. REQUIRES: it was expected.
  void add(operation& ended) noexcept;
  /// Queues a function. REQUIRES: it was expected.
  void add_expected(move_only_handler<> function) noexcept;
  void add(move_only_handler<> function) {
    push_back_reserved(due_, entry{.function = std::move(function)}, expected_);
  }
  /// Queues a call of the handler that this message's number has then.
  void add(arrived_message& active) {
    push_back_reserved(due_, entry{.active = &active}, expected_);
  }

  bool due() const noexcept { return next_ < due_.size(); }
  /// Returns whether something is due that the calling thread could run.
  bool ready() const noexcept { return due() && !running_; }

  /// Runs what is due now, not what that leaves. While another thread runs handlers, the rest is
  /// left to it. Active messages are run by `parts`; `kept` is their worker, if the caller has it.
  /// REQUIRES: `guard` is the only hold of this thread on the lock, which is free meanwhile.
  /// Returns whether anything ran.
  bool run(std::unique_lock<worker_lock>& guard, worker_parts& parts,
           const std::shared_ptr<worker_core>& kept) noexcept;
  /// Returns whether a thread that found another one running should be told that there is more.
  bool take_left_over() noexcept;

  bool running() const noexcept { return running_; }
  /// Runs `calls` without the lock as a handler is run: no other one runs meanwhile.
  /// REQUIRES: as run(); and nothing is running.
  template <class Calls>
  void run_between(std::unique_lock<worker_lock>& guard, Calls calls) noexcept {
    running_ = true;
    guard.unlock();
    calls();
    guard.lock();
    running_ = false;
  }
  /// Calls users' code, and reports what it throws.
  template <class Call>
  void call_and_report(Call call) noexcept {
    try {
      call();
    } catch (...) {
      report_to(*report_, std::current_exception());
    }
  }
  /// Tells of what was thrown. REQUIRES: it is being caught, so that an end of the process says it.
  static void report_to(const std::function<void(std::exception_ptr)>& report,
                        std::exception_ptr thrown) noexcept {
    if (!report) std::terminate();
    report(std::move(thrown));
  }
  /// Returns who is told: for users' code that runs on behind the worker's end.
  std::shared_ptr<const std::function<void(std::exception_ptr)>> reporter() const noexcept {
    return report_;
  }

 private:
  struct entry {
    operation* ended = nullptr;         // one reference is ours
    arrived_message* active = nullptr;  // or the exchange's
    move_only_handler<> function = {};
  };
  void call(entry due) noexcept;

  std::shared_ptr<const std::function<void(std::exception_ptr)>> report_;
  std::vector<entry> due_;
  std::size_t next_ = 0;      // those before it have run
  std::size_t expected_ = 0;  // so many have their room in `due_`
  bool running_ = false;
  bool left_ = false;  // to the thread that runs
};

}  // namespace ucx::detail
