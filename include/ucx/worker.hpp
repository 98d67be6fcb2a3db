#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <system_error>

#include "ucx/completion_handler.hpp"
#include "ucx/context.hpp"
#include "ucx/export.hpp"
#include "ucx/worker_address.hpp"

namespace ucx {

namespace detail {
class worker_core;
}

/// Who drives a worker. All modes give the same answers.
enum class progress_mode {
  caller,           ///< Blocking calls, and `progress()`; nothing happens between calls.
  polling_thread,   ///< A thread of the worker's own that polls: lowest latency, one core.
  sleeping_thread,  ///< A thread that sleeps on UCX's events, and spins briefly after activity.
  external,         ///< The caller's event loop: `event_fd()`, `arm()`, `progress()`, or `run()`.
};

/// How a worker is made. Durations are defaults for everything made from it.
struct worker_options {
  progress_mode progress = progress_mode::caller;
  /// How long `sleeping_thread` polls after the last activity before it sleeps.
  std::chrono::nanoseconds spin = std::chrono::microseconds(100);
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(5);
  std::chrono::nanoseconds operation_timeout = std::chrono::seconds(30);
  /// How long `close()` may flush before the connection is dropped.
  std::chrono::nanoseconds close_timeout = std::chrono::seconds(5);
  /// How often a side that waits for something asks the peer for a sign of life.
  std::chrono::nanoseconds heartbeat_interval = std::chrono::seconds(1);
  /// How long a peer may be silent, while something waits for it, until it counts as dead.
  std::chrono::nanoseconds heartbeat_timeout = std::chrono::seconds(5);
};

/// Drives progress for everything made from it, and serves the regions of its context to peers.
/// Endpoints and listeners keep what they need of it alive, so it may be dropped first; its thread
/// then stops when the last of them is gone.
/// Threads: with a progress thread (`polling_thread`, `sleeping_thread`) everything that belongs to
/// the worker may be used from any thread; otherwise one thread at a time uses the worker and all
/// that was made from it, but for `post()` and `signal()`, which are always safe.
class UCXIO_EXPORT worker {
 public:
  /// Makes a worker, and starts its thread where the mode has one.
  /// Errors: feature_disabled (a mode that sleeps without `feature::wakeup`), too_many_files,
  /// no_memory.    Cost: milliseconds; opens sockets of the context's transports.
  explicit worker(const context& parent, const worker_options& options = {});
  worker(const context& parent, const worker_options& options, std::error_code& ec);

  worker(worker&& other) noexcept;
  worker& operator=(worker&& other) noexcept;
  ~worker();

  /// Returns the address by which peers can connect without an IP address.
  worker_address address() const;
  worker_address address(std::error_code& ec) const;

  /// Does one round of progress: completes what is ready, serves peers, runs posted functions and
  /// deadlines. Returns whether anything happened. With a progress thread: does nothing.
  bool progress();

  /// Returns a descriptor that polls readable when there may be progress to make, or -1 without
  /// `feature::wakeup`. `arm()` first: it tells only of what comes after that.
  int event_fd() const noexcept;
  /// Prepares `event_fd()`. Returns false if there is progress to make already: call `progress()`
  /// until it returns false, then `arm()` again. The caller's poll must wake after
  /// `next_deadline()` at the latest.
  bool arm();
  /// Returns how long the caller's event loop may sleep at most: time to the next heartbeat or
  /// deadline; `nanoseconds::max()` when nothing is outstanding.
  std::chrono::nanoseconds next_deadline() const;
  /// Wakes whoever sleeps on `event_fd()` or inside a blocking call.
  void signal() noexcept;

  /// Runs `function` on the thread that drives progress, soon. May be called from any thread.
  /// Functions that have not run when the worker is destroyed are destroyed unrun.
  void post(move_only_handler<> function);

  /// Drives progress on the calling thread, sleeping when idle where the context has
  /// `feature::wakeup`, until `stop` is requested. REQUIRES: mode `caller` or `external`.
  void run(std::stop_token stop);

  progress_mode mode() const noexcept;

 private:
  friend struct detail::core_access;
  std::shared_ptr<detail::worker_core> core_;
};

}  // namespace ucx
