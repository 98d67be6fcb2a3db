#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <utility>

#include "ucx/completion_handler.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/receive_target.hpp"
#include "ucx/request.hpp"
#include "ucx/scheduled_call.hpp"
#include "ucx/version.hpp"
#include "ucx/worker_options.hpp"

struct ucp_worker;  ///< UCX's type: `ucp_worker_h` is a pointer to it.

namespace ucx {

class endpoint;

namespace detail {
class worker_core;
}

/// Drives progress for everything made from it, and serves the regions of the context to peers.
/// Endpoints and listeners keep what they need of it alive: it may be dropped first. The worker's
/// thread then stops when the last of them is gone.
/// Threads: with a progress thread (`polling_thread`, `sleeping_thread`) or `thread_mode::multi`,
/// any thread may use everything that belongs to the worker. Otherwise one thread at a time may use
/// the worker and all that was made from it. `post()` and `signal()` are always safe.
class UCXIO_EXPORT worker {
 public:
  /// Makes a worker, and starts its thread where the mode has one.
  /// Errors: feature_disabled (a mode that sleeps without `feature::wakeup`, terms without
  /// `feature::am`), invalid_argument (name or terms too long), too_many_files, no_memory.
  /// Cost: milliseconds; opens sockets of the context's transports.
  explicit worker(const context& parent, const worker_options& options = {},
                  std::error_code& ec = throws);

  /// Uses a UCP worker that was made elsewhere from the UCP context of `parent`. The library uses
  /// active messages of ids 254 and 255 from now on.
  /// Lifetime: with `ownership::take` it is destroyed with this object and everything made from it.
  /// With `ownership::borrow` it stays, and has to outlive them; `parent` has to outlive it. Their
  /// end closes their endpoints of UCX and has UCX drop messages of those ids. It waits for their
  /// requests of UCX, `close_timeout` at most. Endpoints without error handling that have requests
  /// then, and the memory of these, are left to UCX's worker.
  /// Threads: see `native_handle()`. Calls of UCX's that make progress serve peers, too. Handlers,
  /// deadlines and new connections wait for progress of this object.
  /// Errors: invalid_argument (null), already_exists (an object of this library drives it, and goes
  /// on), closed (`parent`), not_supported (its thread mode, or its context's, is "single", and the
  /// options ask for threads), feature_disabled, and those of UCX. After an error it stays the
  /// caller's.
  static worker adopt(const context& parent, ucp_worker* made, ownership owner,
                      const worker_options& options = {}, std::error_code& ec = throws);

  worker(worker&& other) noexcept;
  worker& operator=(worker&& other) noexcept;
  /// Lets go of the worker. The last handle first runs handlers that are due, or waits for one that
  /// runs on the worker's thread, `close_timeout` at most. On that thread itself it does not wait.
  ~worker();

  /// Returns another handle to the context that the worker was made from, for regions that it
  /// serves.
  context parent() const;

  /// Returns the address by which peers can connect without an IP address.
  /// Errors: closed (moved from, or not made), and those of UCX.
  worker_address address(std::error_code& ec = throws) const;

  /// Tells of the peers that connect by this worker's address, from now on. Replaces the handlers
  /// that were set before. When this returns, those neither run nor will run, and are destroyed,
  /// unless one of them made this call. A listener's events tell of the other peers. A worker that
  /// connects to itself is not told. `on_closed` is not called for connections that this side
  /// closes.
  /// Lifetime: `events`, until nothing that was made of the worker is left.
  void set_connection_events(connection_events events);

  /// Makes one round of progress: completes finished operations, serves peers, runs posted
  /// functions and deadlines. Returns whether anything happened. With a progress thread it does
  /// nothing.
  bool progress();

  /// Returns a descriptor that polls readable when there may be progress to make, or -1 without
  /// `feature::wakeup`. Call `arm()` first: the descriptor reports only events after that.
  int event_fd() const noexcept;
  /// Prepares `event_fd()`. Returns false if there is progress to make already: call `progress()`
  /// until it returns false, then `arm()` again. The caller's poll must wake after
  /// `next_timeout()` at the latest. Without `feature::wakeup` it always returns false, because
  /// there is no descriptor to sleep on.
  bool arm();
  /// Returns how long the caller's event loop may sleep at most: the time to the next heartbeat or
  /// deadline. `nanoseconds::max()` when nothing is outstanding.
  std::chrono::nanoseconds next_timeout() const;
  /// Wakes the threads that sleep on `event_fd()` or inside a blocking call.
  void signal() noexcept;

  /// Runs `function` on the thread that drives progress, soon. Any thread may call this. Functions
  /// that have not run when the worker is destroyed are destroyed unrun.
  void post(move_only_handler<> function);

  /// Calls `function` once, `delay` from now or at `when`, on the thread that drives progress, as a
  /// handler. A thread has to drive the worker then: `next_timeout()` says when at the latest.
  /// Timers are as fine as a millisecond, and never early.
  /// Lifetime: see `scheduled_call`.
  scheduled_call call_after(std::chrono::nanoseconds delay, move_only_handler<> function);
  scheduled_call call_at(std::chrono::steady_clock::time_point when, move_only_handler<> function);
  /// Calls `function` again and again, for the first time `period` from now, as `call_after` does.
  /// The times are whole periods from now: a late call delays no later one. Times that pass while a
  /// call is due or runs make one call at most. A period below a millisecond counts as one.
  /// Lifetime: see `scheduled_call`. The calls end when its handle goes, or with the worker.
  scheduled_call call_every(std::chrono::nanoseconds period, move_only_handler<> function);

  /// Calls `function` in the next round of progress, or in every round, on the thread that makes
  /// it, as a handler. To give a call up after a while: `if (!call.wait_for(limit)) call.cancel();`
  /// Lifetime: see `scheduled_call`.
  scheduled_call call_in_progress(progress_phase when, repetition how_often,
                                  move_only_handler<> function);

  /// Completes when everything that was started earlier over every connection of this worker is
  /// visible at its peer.
  /// Errors: the first of the connections' that were not lost before; timed_out, canceled.
  request start_flush(const io_options& options = {});
  void flush(const io_options& options = {}, std::error_code& ec = throws);

  /// Like `endpoint::fence()`, for every connection of this worker.
  void fence();

  /// Gives up every operation in flight of this worker, as `request::cancel()` does. Waits for
  /// their ends, `limit` at most (not inside a handler). Returns how many are left. Calls of
  /// `client` and `remote_file` that block go on. So do the writes that such a call waits for, as a
  /// commit, a sync or a close does.
  std::size_t cancel_all(std::chrono::nanoseconds limit = std::chrono::nanoseconds::zero());

  /// Drives progress on the calling thread until `stop` is requested. Sleeps when idle where the
  /// context has `feature::wakeup`. Returns also when handlers have destroyed the worker and
  /// everything that keeps it.
  /// Errors: invalid_argument (the worker has a thread), would_deadlock inside one of the worker's
  /// handlers.
  void run(std::stop_token stop, std::error_code& ec = throws);

  /// Returns the mode in force, which is never `automatic`.
  progress_mode mode() const noexcept;

  /// Returns UCX's description of the worker.
  /// Errors: closed (moved from, or not made), and those of UCX.
  worker_attributes attributes(std::error_code& ec = throws) const;
  /// Returns the counters of copies from and to memory of devices for this worker. They count
  /// memory of regions that peers used over it, and device memory that was read into or written
  /// from here.
  /// Threads: safe.
  staging_statistics staging() const noexcept;

  /// Returns UCX's worker, for calls of UCX's API; null if there is none. The caller must not
  /// destroy it. UCX allows one call at a time: use it where no other thread uses this object.
  /// Where the worker has a thread, use it there (`post()`).
  ucp_worker* native_handle() const noexcept;

  /// Returns how many connections of the worker are active, on either side.
  std::size_t connections() const noexcept;

  // Messages of any peer: docs/reference/messages.md. endpoint.hpp has these calls for one peer,
  // and says what a device's memory changes.

  /// Receives the next message with a tag that `wanted` accepts, from any peer, into `into`.
  /// Completes: when the message is in place. `request::received()` has its tag and length.
  /// Lifetime: see `receive_target`.
  /// Errors: message_truncated (it is lost, and nothing was written), message_withdrawn,
  /// feature_disabled, timed_out, canceled, and those of the form of `into`; for a message that was
  /// announced or on its way when its connection ended: connection_reset, closed_by_peer, closed
  /// and any other cause of the end.
  /// Cost: one copy. For a long message a round trip.
  request start_receive(const tag_match& wanted, const receive_target& into,
                        const io_options& options = {});
  /// Like `start_receive`, and waits. Returns the facts of the message.
  /// Errors: also would_deadlock inside a handler.
  message_info receive(const tag_match& wanted, const receive_target& into,
                       const io_options& options = {}, std::error_code& ec = throws);

  /// Returns the facts of the next message with a tag that `wanted` accepts. It has come, or was
  /// announced, and was not taken. It may be lost since: its receive reports that. Makes no
  /// progress. Empty where none has come, and without `feature::am`.
  /// Cost: a look at every message that waits before it.
  std::optional<message_info> probe(const tag_match& wanted) const;
  /// Like `probe`, and takes the message: no other receive gets it. A sender that waits for that
  /// (`send_until::matched`) is told. The sender has its room back when the message dies.
  std::optional<message> take(const tag_match& wanted);

  /// Calls `handler` for every active message of this number from now on, instead of an earlier
  /// handler. Without a handler such messages are refused. It is called on the thread that drives
  /// progress, and must not wait. It may keep the message, answer it, and receive its payload
  /// later. When this returns, the earlier handler neither runs nor will run, unless it made this
  /// call.
  /// Errors: feature_disabled; already_exists where the number's upper half belongs to another
  /// owner: the one for whom a number with it was set first. Plain numbers have an owner of their
  /// own, and those below 2^32 are free. Then nothing has changed.
  void on_message(std::uint64_t number, move_only_handler<message> handler,
                  std::error_code& ec = throws);
  void on_message(const message_name& name, move_only_handler<message> handler,
                  std::error_code& ec = throws);

#if UCXIO_OLD_NAMES
#include "ucx/old_names/worker.ipp"
#endif

 private:
  friend struct detail::core_access;
  explicit worker(std::shared_ptr<detail::worker_core> core, bool is_of_library = false) noexcept
      : core_(std::move(core)), is_of_library_(is_of_library) {}
  std::shared_ptr<detail::worker_core> core_;
  bool is_of_library_ = false;  // beside the program's handle, whose end alone counts
};

}  // namespace ucx
