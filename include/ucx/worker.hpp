#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "ucx/buffer.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/connection_terms.hpp"
#include "ucx/context.hpp"
#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"
#include "ucx/message.hpp"
#include "ucx/message_info.hpp"
#include "ucx/message_parts.hpp"
#include "ucx/request.hpp"
#include "ucx/scheduled_call.hpp"
#include "ucx/staging_statistics.hpp"
#include "ucx/tag_match.hpp"
#include "ucx/worker_address.hpp"
#include "ucx/worker_attributes.hpp"

struct ucp_worker;  ///< UCX's own: `ucp_worker_h` is a pointer to it.

namespace ucx {

class buffer_pool;
class endpoint;

namespace detail {
class worker_core;
}

/// Who drives a worker. All modes give the same answers.
enum class progress_mode {
  automatic,        ///< `caller`; a server's worker: `sleeping_thread`.
  caller,           ///< Blocking calls, and `progress()`; nothing happens between calls.
  polling_thread,   ///< A thread of the worker's own that polls: lowest latency, one core.
  sleeping_thread,  ///< A thread that sleeps on UCX's events, and spins briefly after activity.
  external,         ///< The caller's event loop: `event_fd()`, `arm()`, `progress()`, or `run()`.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(progress_mode value) noexcept;

/// From which threads a worker without a thread of its own may be used.
enum class thread_safety {
  automatic,  ///< `single`; a client's worker: `safe`.
  single,     ///< One thread at a time.
  safe,       ///< Any, at any time; one that waits drives progress for all.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(thread_safety value) noexcept;

/// Where in a round of progress a function is called.
enum class progress_phase {
  before,  ///< Before UCX is asked for what has come.
  after,   ///< Behind everything else, handlers included.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(progress_phase value) noexcept;

/// How often it is called.
enum class repetition {
  once,  ///< In the next round, which the worker's thread, or a sleeping driver, makes at once.
  every_round,  ///< In every round that is made. A worker that sleeps makes none.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(repetition value) noexcept;

/// How a worker is made. Durations are defaults for everything made from it; zero, or less, means
/// what is written here: nothing waits for no time at all, and nothing for ever.
struct worker_options {
  progress_mode progress = progress_mode::automatic;
  thread_safety threads = thread_safety::automatic;
  /// How long `sleeping_thread` polls after the last activity before it sleeps.
  std::chrono::nanoseconds spin = std::chrono::microseconds(100);
  /// How long connecting may take, looking a name up included, and all addresses of it together.
  std::chrono::nanoseconds connect_timeout = std::chrono::seconds(5);
  std::chrono::nanoseconds operation_timeout = std::chrono::seconds(30);
  /// How long `close()` may flush before the connection is dropped.
  std::chrono::nanoseconds close_timeout = std::chrono::seconds(5);
  /// How often a side that waits for something asks the peer for a sign of life.
  std::chrono::nanoseconds heartbeat_interval = std::chrono::seconds(1);
  /// How long a peer may be silent, while something waits for it, until it counts as dead.
  std::chrono::nanoseconds heartbeat_timeout = std::chrono::seconds(5);
  /// How many bytes of messages each peer may have here that the program has not taken: what bounds
  /// memory, and holds senders back. Zero means the default; less than 16 KiB means that.
  std::size_t message_window = 4 << 20;
  /// How much memory of the host may be pinned, for bytes on their way to or from the memory of
  /// CUDA devices; none is before there are such. What finds none pinned free takes memory that is
  /// not, and is slower (`staging_statistics`). Zero means the default.
  std::size_t pinned_memory = std::size_t{64} << 20U;
  /// Called first on the worker's own thread, where the mode has one: to set its affinity, its
  /// name, or a device's context, which handlers then find there: copies of the library's leave it.
  std::function<void()> on_thread_start = {};
  /// Gets what a handler threw, on the thread that ran it; progress goes on behind it. Without one,
  /// or when it throws itself, std::terminate is called.
  std::function<void(std::exception_ptr)> on_exception = {};
  /// Told to peers, and shown in logs and by UCX's own tools: 64 bytes at most. Empty: UCX's
  /// choice.
  std::string name = {};
  /// What connections are made with whose own options say nothing.
  connection_terms terms = {};
  /// Called from progress for each peer that has connected by this worker's address: the other side
  /// of those that a listener's handlers tell of. `peer` is another handle of the connection, empty
  /// where the peer has left already: dropped, it changes nothing; kept, it keeps the worker. One
  /// that is told with `report` has its end told by `on_closed`, unless it is closed on this side.
  /// A worker that connects to itself is not told.
  /// Lifetime: of all three, until nothing that was made of the worker is left.
  std::function<void(endpoint peer, const connection_report& report)> on_established = {};
  /// The same of one that did not come to be: the terms were not met, or the peer left before.
  std::function<void(const connection_refusal& refusal)> on_refused = {};
  std::function<void(const connection_end& end)> on_closed = {};
};

/// Drives progress for everything made from it, and serves the regions of its context to peers.
/// Endpoints and listeners keep what they need of it alive, so it may be dropped first; its thread
/// then stops when the last of them is gone.
/// Threads: with a progress thread (`polling_thread`, `sleeping_thread`) or `thread_safety::safe`
/// everything that belongs to the worker may be used from any thread; otherwise one thread at a
/// time uses the worker and all that was made from it, but for `post()` and `signal()`, which are
/// always safe.
class UCXIO_EXPORT worker {
 public:
  /// Makes a worker, and starts its thread where the mode has one.
  /// Errors: feature_disabled (a mode that sleeps without `feature::wakeup`, terms without
  /// `feature::am`), invalid_argument (name or terms too long), too_many_files,
  /// no_memory.    Cost: milliseconds; opens sockets of the context's transports.
  explicit worker(const context& parent, const worker_options& options = {});
  worker(const context& parent, const worker_options& options, std::error_code& ec);

  /// Takes over a UCP worker of the same UCP context that was made elsewhere: it is destroyed with
  /// this object and what was made of it. Active messages of id 255 are ours from here on.
  /// Errors: invalid_argument (null), closed (`parent`), not_supported (its thread mode, or its
  /// context's, is "single", and the options ask for threads), feature_disabled, and what UCX
  /// reports; then it stays the caller's.
  static worker adopt(const context& parent, ucp_worker* made, const worker_options& options = {});
  static worker adopt(const context& parent, ucp_worker* made, const worker_options& options,
                      std::error_code& ec);

  worker(worker&& other) noexcept;
  worker& operator=(worker&& other) noexcept;
  /// Where it is the last that uses the worker, and its thread is in a handler that keeps it, waits
  /// for that handler, `close_timeout` at most. On that thread itself it waits for nothing.
  ~worker();

  /// Returns another handle to the context that this was made of: for regions that it serves.
  context parent() const;

  /// Returns the address by which peers can connect without an IP address.
  /// Errors: closed (moved from, or not made), and what UCX reports.
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
  /// `next_deadline()` at the latest. Without `feature::wakeup` always false, as `event_fd()` is
  /// -1: there is nothing to sleep on.
  bool arm();
  /// Returns how long the caller's event loop may sleep at most: time to the next heartbeat or
  /// deadline; `nanoseconds::max()` when nothing is outstanding.
  std::chrono::nanoseconds next_deadline() const;
  /// Wakes whoever sleeps on `event_fd()` or inside a blocking call.
  void signal() noexcept;

  /// Runs `function` on the thread that drives progress, soon. May be called from any thread.
  /// Functions that have not run when the worker is destroyed are destroyed unrun.
  void post(move_only_handler<> function);

  /// Calls `function` once, `delay` from now or at `when`, on the thread that drives progress, as a
  /// handler. Somebody has to drive the worker then: `next_deadline()` says when at the latest.
  /// Timers are as fine as a millisecond, and never early.    Lifetime: see scheduled_call.
  scheduled_call call_after(std::chrono::nanoseconds delay, move_only_handler<> function);
  scheduled_call call_at(std::chrono::steady_clock::time_point when, move_only_handler<> function);

  /// Calls `function` in the next round of progress, or in every one, on the thread that makes it,
  /// as a handler. For a call that is given up after a while:
  /// `if (!call.wait_for(limit)) call.cancel();`    Lifetime: see scheduled_call.
  scheduled_call call_in_progress(progress_phase when, repetition how_often,
                                  move_only_handler<> function);

  /// Completes when everything started earlier over every connection of this worker is visible at
  /// its peer. Errors: the first of the connections' that were not lost before; timed_out,
  /// canceled.
  request start_flush(const io_options& options = {});
  void flush(const io_options& options = {});
  void flush(std::error_code& ec, const io_options& options = {});

  /// See `endpoint::fence()`: for every connection of this worker.
  void fence();

  /// Gives up every operation of this worker that is in flight, as `request::cancel()` does, and
  /// waits for their ends, `limit` at most (not inside a handler). Returns how many are left.
  std::size_t cancel_all(std::chrono::nanoseconds limit = std::chrono::nanoseconds::zero());

  /// Drives progress on the calling thread, sleeping when idle where the context has
  /// `feature::wakeup`, until `stop` is requested. Errors: invalid_argument (a thread of its own
  /// drives it), would_deadlock inside a handler of it.
  void run(std::stop_token stop);
  void run(std::stop_token stop, std::error_code& ec);

  /// Returns the mode in force; never `automatic`.
  progress_mode mode() const noexcept;

  /// Returns what UCX says of the worker.
  /// Errors: closed (moved from, or not made), and what UCX reports.
  worker_attributes attributes() const;
  worker_attributes attributes(std::error_code& ec) const;
  /// Returns what was copied from and to memory of devices for this worker: that of its regions
  /// which peers used over it, and what was read into or written from such memory here.
  /// Threads: safe.
  staging_statistics staging() const noexcept;

  /// Returns UCX's worker, for calls of its own API; null if there is none. It is not the caller's
  /// to destroy. UCX allows one call at a time: use it where nobody else uses this object, on the
  /// thread that drives progress (`post()`) where the worker has one.
  ucp_worker* native_handle() const noexcept;

  /// Returns how many connections of the worker are active, on either side.
  std::size_t connections() const noexcept;

  // Messages, of any peer: docs/reference/messages.md. endpoint.hpp has the same for one peer, and
  // says what a device's memory changes.

  /// Receives the next message with such a tag, from whomever, into `into` or (several spans)
  /// spread over them. Completes: when the message is here; `request::received()` tells its tag and
  /// length. Lifetime: `into`, until the request is done. Errors: message_truncated (it is lost,
  /// and nothing was written), message_withdrawn, feature_disabled, timed_out, canceled;
  /// connection_reset, closed_by_peer, closed and what else ended the connection, of a message that
  /// was announced or on its way then. Cost: one copy; for a long message a round trip.
  request start_receive(const tag_match& wanted, std::span<std::byte> into,
                        const io_options& options = {});
  request start_receive(const tag_match& wanted, std::span<const std::span<std::byte>> into,
                        const io_options& options = {});
  /// As above, into memory that is allocated when the length is known: `most` bytes at most,
  /// because a peer says how many. What `made` held before goes then, and stays where the receive
  /// ends without a message.    Lifetime: `made`, in its place and untouched, until the request is
  /// done.    Errors also: no_memory.
  request start_receive(const tag_match& wanted, buffer& made, std::size_t most,
                        const io_options& options = {});
  /// As above, into a buffer of `pool` that is taken when the message is there: one pool may serve
  /// any number of receives. Where all are out the message waits, and with it its room and in the
  /// end its sender, until a buffer comes back: receives that wait are served in turn, and before
  /// who calls `take()`. What `made` held goes at the call.    Lifetime: `made`, until the request
  /// is done; the pool may go before.    Errors: message_truncated where the buffers of the pool
  /// are too small; timed_out also where none came back, the message then is there for the next
  /// receive; closed (a pool that was moved from).
  request start_receive(const tag_match& wanted, buffer& made, buffer_pool& pool,
                        const io_options& options = {});
  /// The same for what was sent as parts; `most` counts eight bytes for each, and for all of them.
  /// Lifetime: `made`, as above.    Errors also: protocol_error, where it was not; the connection
  /// lives, and `made` has no parts.
  request start_receive(const tag_match& wanted, message_parts& made, std::size_t most,
                        const io_options& options = {});

  /// As `start_receive`, and waits; returns what came. Errors also: would_deadlock inside a
  /// handler.
  message_info receive(const tag_match& wanted, std::span<std::byte> into,
                       const io_options& options = {});
  message_info receive(const tag_match& wanted, std::span<std::byte> into, std::error_code& ec,
                       const io_options& options = {});

  /// Returns the next message with such a tag that has come, or was announced, and that nobody has
  /// taken, also one that is lost since: who receives it is told. Makes no progress. Without
  /// `feature::am` none comes: nothing, as where none has come. Cost: a look at every message that
  /// waits before it.
  std::optional<message_info> probe(const tag_match& wanted) const;
  /// As `probe`, and takes the message: nobody else gets it, and a sender who waits for that
  /// (`send_until::matched`) is told. Its room is its sender's again when it dies.
  std::optional<message> take(const tag_match& wanted);

  /// Calls `handler` for every active message of this number from now on, instead of any handler it
  /// had; none refuses them. On the thread that drives progress; it must not wait, and it
  /// may keep the message, answer it, and receive its payload later. When this has returned the one
  /// it had neither runs nor will run, unless that is who called.
  /// Errors: feature_disabled.
  void on_message(std::uint64_t number, move_only_handler<message> handler);
  void on_message(std::uint64_t number, move_only_handler<message> handler, std::error_code& ec);

 private:
  friend struct detail::core_access;
  explicit worker(std::shared_ptr<detail::worker_core> core) noexcept : core_(std::move(core)) {}
  std::shared_ptr<detail::worker_core> core_;
};

}  // namespace ucx
