// The workers of a context, which serve its regions.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/clock.hpp"

namespace ucx::detail {

class counted_region;
class worker_core;

/// Knows them for one thing: when a region is withdrawn, each of them has to end its answers.
/// Threads: safe.
class context_workers {
 public:
  context_workers() = default;
  context_workers(const context_workers&) = delete;
  context_workers& operator=(const context_workers&) = delete;

  void add(std::weak_ptr<worker_core> worker);
  /// Waits until no access to `region` runs, driving, and cutting off where needed: after a
  /// worker's `heartbeat_timeout`, or at `cut_off`.
  void drain(counted_region& region, clock::time_point cut_off) noexcept;

 private:
  void drain_one_by_one(counted_region& region, clock::time_point cut_off) noexcept;

  std::mutex mutex_;
  std::vector<std::weak_ptr<worker_core>> all_;
  int walks_ = 0;  // by index, which is every worker's own as long as there are any
};

}  // namespace ucx::detail
