// The one primitive under every asynchronous call: an operation with one completion.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "cuda/stream_wait_value.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class driven_connection;
class endpoint_core;
class operation_group;
class stop_link;
class worker_core;

struct outstanding_tag {};
struct group_tag {};

/// Shared by its `request` handle and by the code that will complete it; counted, recycled by its
/// worker. Everything but `done()` and `error()` happens under the worker's lock. It has more
/// functions than a class should: its handle, its worker, its connection and its waiting threads
/// each need a few of these.
class operation : public list_hook<outstanding_tag>, public list_hook<group_tag> {
 public:
  operation() noexcept = default;
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;
  virtual ~operation();

  bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Returns why it failed; meaningful once done.
  std::error_code error() const noexcept { return done() ? error_ : std::error_code(); }

  void retain() noexcept {
    assert(is_guarded());
    ++references_;
  }
  /// Drops a reference; the last one recycles the operation, and what it keeps may go with it.
  void release() noexcept {
    assert(is_guarded());
    if (--references_ > 0) return;
    const kept_alive held = let_go();
    retire();
  }
  /// Drops the reference of the request handle, and what that keeps: the connection may go with it,
  /// and the worker. Takes the lock itself. While a call waits for it, that is left to the call.
  void drop() noexcept;
  /// A call of the request handle waits: what the handle has, the call has, too. They take the lock
  /// themselves where several threads use the worker.
  void begin_wait() noexcept;
  void end_wait() noexcept;

  worker_core& worker() const noexcept { return *worker_; }
  /// Returns whether it is of a worker: one that failed before it began is not.
  bool has_worker() const noexcept { return worker_ != nullptr; }
  /// Returns whether it is of a worker of a process that this one was forked from.
  bool is_inherited() const noexcept;
  /// Its connection; nothing where it has none. Defined in endpoint_core.hpp.
  endpoint_core* endpoint() const noexcept;
  /// Its connection, as the worker knows it; null where it has none.
  driven_connection* connection() const noexcept { return connection_; }
  clock::time_point deadline() const noexcept { return deadline_; }

  /// Counts the operations of the worker, in the order in which they started.
  std::uint64_t sequence() const noexcept { return sequence_; }
  void set_sequence(std::uint64_t sequence) noexcept { sequence_ = sequence; }

  /// Kept by a request handle; the connection goes first.
  struct kept_alive {
    std::shared_ptr<worker_core> worker = {};
    std::shared_ptr<driven_connection> connection = {};
    driven_connection* counted = nullptr;  ///< Or one that counts who keeps it.
  };
  /// Has the request handle keep the worker, too, where its connection does not. Before anybody has
  /// the handle: that needs no lock.
  void keep_worker() noexcept;
  /// Lets go of the connection that the request handle kept open; called when the handle goes. The
  /// operation itself then needs no connection kept: a connection ends after all of UCX's
  /// callbacks.
  kept_alive let_go() noexcept;
  // Numbers of `posted_operations`, if it is one.
  std::uint64_t group_mark = 0;
  std::uint64_t connection_mark = 0;

  /// Takes the one place for a handler; returns whether it was free.
  bool claim_handler() noexcept { return !std::exchange(has_handler_, true); }
  bool has_handler() const noexcept { return has_handler_; }
  /// Sets what is called at completion, or queues it now when done.
  void set_handler(completion_handler handler);
  /// As `set_handler()`, for a handler that the worker expects already.
  void set_expected_handler(completion_handler handler) noexcept;
  /// Takes back the handler, which has not been called.
  completion_handler take_handler() noexcept {
    return std::exchange(handler_, completion_handler());
  }
  /// Takes a gate, which is opened when the operation ends, or is gone. If its time was over
  /// before, the operation has timed out, whatever became of it: what the gate held back has gone
  /// on. REQUIRES: it has not ended.
  void add_gate(std::unique_ptr<stream_wait_value> shut) noexcept;
  /// Gives it up when the link's stop is requested. A later link replaces an earlier one.
  /// REQUIRES: it has not ended.
  void set_stop(std::shared_ptr<stop_link> link) noexcept;
  /// Calls and clears the handler; called by the worker outside of UCX's callbacks. Throws what the
  /// handler throws.
  void run_handler();

  /// Ends the operation early for `why` (timed_out, canceled). That is at once where UCX has no
  /// memory of the caller's, else when UCX has let go, which `linger_deadline` bounds.
  virtual void give_up(errc why) noexcept = 0;
  /// The connection failed: ends the operation now, or when UCX's callbacks have come.
  virtual void connection_failed(std::error_code why) noexcept = 0;
  /// See request::rebind.
  virtual bool rebind(std::span<std::byte> into) noexcept;
  /// Returns the status by which UCX failed it, of those that a connection does not have.
  virtual std::optional<int> own_ucx_status() const noexcept { return {}; }
  /// See request::ucx_status.
  std::optional<int> ucx_status() const noexcept;
  /// Returns whether only the peer's answer can end it, so that its silence counts.
  virtual bool awaits_peer() const noexcept { return false; }
  /// Returns whether it is the library's own doing, which canceling all operations leaves alone.
  virtual bool is_own() const noexcept { return false; }
  /// Returns whether a call that blocks waits for it: canceling all operations leaves it alone.
  virtual bool is_blocking() const noexcept { return is_blocking_; }
  virtual void set_blocking() noexcept { is_blocking_ = true; }
  /// Returns whether this side has ended it early: what it was to find out is not known.
  virtual bool was_given_up() const noexcept { return false; }
  /// Returns whether its end leaves something to a round, which a dropped request has to see to.
  virtual bool leaves_to_round() const noexcept { return false; }
  /// See request::received.
  virtual message_info received() const noexcept { return {}; }
  /// Says what is tried, on what: the beginning of an error text.
  virtual std::string describe() const = 0;
  /// See request::attributes; without those of the connection.
  virtual request_attributes attributes() const { return {}; }

 protected:
  /// Starts a life: one reference for the request handle and one for the code that completes it.
  void start(worker_core& worker, std::shared_ptr<driven_connection> connection,
             clock::time_point deadline) noexcept;
  /// Starts a life; `held` is kept until the request handle goes.
  void start(worker_core& worker, kept_alive&& held, clock::time_point deadline) noexcept;
  /// Starts a life of an operation that belongs to no one connection, or to none that is known yet.
  void start(std::shared_ptr<worker_core> worker, clock::time_point deadline) noexcept;
  /// It turned out to be of this connection, whose end ends it.
  void attach(std::shared_ptr<driven_connection> connection) noexcept;
  /// Ends it: sets the outcome, wakes waiters, queues the handler, and drops the completer's
  /// reference. Exactly once a life.
  void complete(std::error_code outcome) noexcept;
  /// For an operation that never starts: done and failed from the beginning, of no worker.
  void fail(std::error_code why) noexcept;
  /// Puts the object where its worker finds it for the next operation of this kind.
  virtual void recycle() noexcept = 0;

  void move_deadline(clock::time_point deadline) noexcept;

 private:
  friend class operation_group;
  /// Returns whether the calling thread has its worker's lock, as far as is known, or needs none.
  bool is_guarded() const noexcept;
  bool claim_gates() noexcept;
  void open_gates() noexcept;
  void retire() noexcept;
  void begin(worker_core& worker, clock::time_point deadline) noexcept;

  std::uint32_t references_ = 0;
  std::uint32_t waits_ = 0;  // calls
  bool is_left_to_call_ = false;
  std::atomic<bool> done_{true};
  std::error_code error_;
  completion_handler handler_;
  std::unique_ptr<stream_wait_value> gates_;  // a list
  bool has_handler_ = false;
  bool is_blocking_ = false;
  std::shared_ptr<stop_link> stop_;
  std::uint64_t sequence_ = 0;
  worker_core* worker_ = nullptr;
  driven_connection* connection_ = nullptr;
  operation_group* group_ = nullptr;  // has the request handle's reference
  kept_alive held_;
  clock::time_point deadline_;
};

/// Returns the one-line text of a failed operation, with the connection's own words.
std::string failure_text(const operation& failed);

}  // namespace ucx::detail
