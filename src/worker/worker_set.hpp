// Several workers that one thread drives, or waits for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "base/clock.hpp"
#include "base/idle_rounds.hpp"
#include "worker/progress_leader.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Leads every worker that has no leader, for as long as it lives.
class worker_set {
 public:
  worker_set() = default;
  worker_set(const worker_set&) = delete;
  worker_set& operator=(const worker_set&) = delete;
  ~worker_set();

  /// Adds a worker, unless it is there.
  void add(std::shared_ptr<worker_core> worker);
  bool empty() const noexcept { return members_.empty(); }

  /// Call it before you look for what you wait for: `rest()` does not sleep over what happens from
  /// then on.
  void look() noexcept;
  /// Makes a round of each worker that this thread drives; returns whether anything happened.
  bool progress();
  /// Gives the processor away until there may be something to do, or `until`. Call it when
  /// `progress()` has found nothing; the more often in a row, the longer it rests.
  void rest(clock::time_point until);

 private:
  struct member {
    explicit member(std::shared_ptr<worker_core> of) : worker(std::move(of)), leader(*worker) {}
    std::shared_ptr<worker_core> worker;
    progress_leader leader;
    std::uint32_t seen = 0;
    bool driven_here = false;
  };
  void sleep(clock::time_point until);
  bool can_sleep() const noexcept;

  std::list<member> members_;
  int events_ = -1;  // an epoll descriptor of the workers' event descriptors
  idle_rounds idle_;
};

}  // namespace ucx::detail
