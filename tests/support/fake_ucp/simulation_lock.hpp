// The lock of a simulation: who holds it runs the simulation's code, and not the library's.
#pragma once

#include <mutex>

namespace ucx::test::sim {

class simulation_lock {
 public:
  /// Told `true` before the lock is taken and `false` when it is free again, by the thread itself.
  using border_watcher = void (*)(bool inside);

  void lock() {
    if (watcher_ != nullptr) watcher_(true);
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    if (watcher_ != nullptr) watcher_(false);
  }
  /// REQUIRES: one thread uses the simulation, and is outside.
  void watch(border_watcher watcher) noexcept { watcher_ = watcher; }

 private:
  std::mutex mutex_;
  border_watcher watcher_ = nullptr;
};

}  // namespace ucx::test::sim
