// A point in time at which a worker does something of the library's own.
#pragma once

#include <chrono>
#include <memory>
#include <new>
#include <string>

#include "base/clock.hpp"
#include "worker/operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Rings once, unless it is called off first. Under the worker's lock.
class alarm final : public operation {
 public:
  /// Sets an alarm; `on_ring` runs under the lock. The pointer is good until it rings or is off.
  static alarm* set(worker_core& worker, clock::time_point when, move_only_handler<> on_ring) {
    auto made = std::make_unique<alarm>();
    made->on_ring_ = std::make_shared<move_only_handler<>>(std::move(on_ring));
    made->start(worker, nullptr, when);
    alarm* const running = made.release();
    running->release();  // there is no request: whoever completes it owns it
    return running;
  }
  void call_off() noexcept { give_up(errc::canceled); }

  void give_up(errc why) noexcept override {
    if (done() || (ringing_ && why == errc::timed_out)) return;
    if (why != errc::timed_out) return complete(make_error_code(why));
    // It ends when its function runs, not before: until then it may be called off.
    ringing_ = true;
    move_deadline(clock::time_point::max());
    try {
      worker().defer([this, rings = std::weak_ptr(on_ring_)] {
        const std::shared_ptr<move_only_handler<>> function = rings.lock();
        if (!function) return;
        complete({});
        (*function)();
      });
    } catch (const std::bad_alloc&) {  // a little later, then
      ringing_ = false;
      move_deadline(worker().api().now() + std::chrono::milliseconds(1));
    }
  }
  void connection_failed(std::error_code) noexcept override {}
  bool is_own() const noexcept override { return true; }
  std::string describe() const override { return {}; }

 protected:
  void recycle() noexcept override { delete this; }

 private:
  std::shared_ptr<move_only_handler<>> on_ring_;
  bool ringing_ = false;
};

}  // namespace ucx::detail
