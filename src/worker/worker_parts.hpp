// The parts that work at a worker, and are driven by it: connections, messages, and the answers to
// peers.
#pragma once

#include <memory>
#include <mutex>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "worker/worker_lock.hpp"

namespace ucx::detail {

struct arrived_message;
class connection_table;
class counted_region;
class driven_connection;
class handler_queue;
class message_exchange;
class frame_sender;
class region_service;
class worker_core;

/// The wishes of the parts for a round: they keep it, and every round looks, which a call would
/// slow.
struct round_agenda {
  bool copies = false;  ///< Bytes to copy that no message of UCX's tells of.
  bool owed = false;    ///< Work that a connection owes, to be done behind UCX's callbacks.
};

/// A worker knows its parts by this interface only, and hands them out to those who know more. Made
/// with the worker and gone with it. Every function is called under the worker's lock.
class worker_parts {
 public:
  worker_parts() = default;
  worker_parts(const worker_parts&) = delete;
  worker_parts& operator=(const worker_parts&) = delete;
  virtual ~worker_parts() = default;

  virtual connection_table& connections() noexcept = 0;
  virtual frame_sender& sender() noexcept = 0;
  virtual message_exchange& messages() noexcept = 0;
  virtual region_service& service() noexcept = 0;

  /// UCX's worker is there: takes its messages. Errors: as ucp_worker_set_am_recv_handler.
  virtual result<void> open() = 0;
  /// The worker ends: drops the connections. Work that this leaves is still done.
  virtual void close() noexcept = 0;
  /// No work is done any more: ends what runs elsewhere, bounded, and gives UCX back what is its
  /// own.
  virtual void stop() noexcept = 0;

  /// UCX's worker stays when this one goes: has it drop the messages that peers send.
  virtual void leave() noexcept = 0;

  /// UCX's worker is gone: deletes them all.
  virtual void destroy_all_deferred() noexcept = 0;

  // In rounds.
  /// Copies as much as a round may. REQUIRES: `round_agenda::copies`.
  virtual void copy() = 0;
  /// A buffer came back that a receive waits for.
  virtual void buffers_came() = 0;
  /// Lets go of served peers that are gone.
  virtual void reap() = 0;
  /// Has the connections do what they owe; returns false where there was no memory for all of it.
  virtual bool pay_owed() noexcept = 0;
  /// Deletes the connections that have no holder and that UCX has let go of.
  virtual void destroy_deferred() noexcept = 0;
  /// Returns whether connections are left of which UCX has not let go.
  virtual bool has_deferred() noexcept = 0;
  /// Looks at every connection's clock; returns when to look again.
  virtual clock::time_point tick(clock::time_point now) = 0;
  /// Runs the handler of an active message, on behalf of `queue`. REQUIRES: `guard` is the only
  /// hold of this thread on the lock, which is free meanwhile. `kept` is the worker, if the caller
  /// has it.
  virtual void run_handler(arrived_message& active, handler_queue& queue,
                           std::unique_lock<worker_lock>& guard,
                           const std::shared_ptr<worker_core>& kept) noexcept = 0;

  /// Ends the answers that are under way to a connection that is lost.
  virtual void connection_failed(const driven_connection& connection) noexcept = 0;

  // Of a region that is withdrawn.
  virtual bool answering(const counted_region& region) const noexcept = 0;
  /// Ends the answers that can be ended without dropping a connection.
  virtual void withdraw(const counted_region& region) = 0;
  /// Drops the connections whose answers read it.
  virtual void cut_off(const counted_region& region) = 0;
};

}  // namespace ucx::detail
