// A point in time at which a worker does something of the library's own.
#pragma once

#include <cassert>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "worker/operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// Rings when its time has come, once for each `set()`, unless it is called off first. All memory
/// that it takes it has from its beginning. Under the worker's lock, but for its own end.
class alarm final : public operation {
 public:
  /// `on_ring` runs under the lock; it may end the alarm.    Lifetime: the worker.
  alarm(worker_core& worker, move_only_handler<> on_ring)
      : of_(worker), on_ring_(std::make_shared<move_only_handler<>>(std::move(on_ring))) {}
  /// REQUIRES: it is not set.
  ~alarm() override { assert(done()); }

  /// Sets it, or sets it anew. One that is about to ring does so all the same.
  void set(clock::time_point when) noexcept {
    if (done()) {
      ringing_ = false;
      start(of_, nullptr, when);
      release();  // there is no request: its completion owns it
    } else if (!ringing_) {
      move_deadline(when);
    }
  }
  void call_off() noexcept {
    ringing_ = false;
    if (!done()) complete(make_error_code(errc::canceled));
  }

  void give_up(errc why) noexcept override {
    if (why != errc::timed_out) return call_off();
    // It ends when its function runs, not before: until then it may be called off.
    move_deadline(clock::time_point::max());
    if (std::exchange(ringing_, true)) return;
    try {
      worker().defer([this, rings = std::weak_ptr(on_ring_)] {
        const std::shared_ptr<move_only_handler<>> function = rings.lock();
        if (!function || !std::exchange(ringing_, false)) return;
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
  void recycle() noexcept override {}  // its owner's

 private:
  worker_core& of_;
  std::shared_ptr<move_only_handler<>> on_ring_;
  bool ringing_ = false;
};

}  // namespace ucx::detail
