// Who of the threads that wait for a worker drives it.
#pragma once

namespace ucx::detail {

class worker_core;

/// The right of one thread to drive a worker that several share and wait for; the others are
/// woken by it. Goes with the wait that took it, and to whoever waits next.
class driver_seat {
 public:
  explicit driver_seat(worker_core& worker) noexcept : worker_(worker) {}
  driver_seat(const driver_seat&) = delete;
  driver_seat& operator=(const driver_seat&) = delete;
  ~driver_seat();
  /// Returns whether the calling thread drives.
  bool take() noexcept;

 private:
  friend class worker_core;
  worker_core& worker_;
  bool held_ = false;
  bool slept_ = false;  // while another one had it
};

}  // namespace ucx::detail
