// The books of a connection: which operations wait for the peer, which wait to be sent, and what
// fences and flushes wait for.
#pragma once

#include <cstdint>
#include <system_error>

#include "base/intrusive_list.hpp"
#include "connection/flush_operation.hpp"
#include "connection/peer_question.hpp"
#include "connection/write_epochs.hpp"
#include "worker/operation_group.hpp"

namespace ucx::detail {

class endpoint_core;
class remote_region_core;

/// A part of the connection, as a group of UCX's flushes that fences started: messages behind those
/// wait for them. Everything happens under the worker's lock.
class operation_book final : private operation_group {
 public:
  explicit operation_book(endpoint_core& connection) : connection_(connection) {}

  // Questions that the peer has to answer.
  /// Asks now, or when there is room on the wire and what is before the last fence has ended.
  void add(peer_question& started);
  void remove(peer_question& ended) noexcept;
  /// The connection is open, or something that others waited for has ended.
  void send_queued();
  bool awaits_peer() const noexcept { return !asked_.empty(); }
  bool empty() const noexcept { return asked_.empty() && queued_.empty(); }

  // Flushes.
  /// The writes by message, answered or not; the end of each goes through `write_ended`.
  write_epochs& writes() noexcept { return writes_; }
  void write_ended(std::uint64_t epoch);
  /// Flushes of the connection that wait for writes.
  void add(flush_operation& waiting) noexcept { flushes_.push_back(waiting); }
  void remove(flush_operation& ended) noexcept;

  // Fences: what is started behind one waits, or takes another way, until what was before has
  // taken effect at the peer.
  void fence();
  /// RMA was started, which does not wait in our queue.
  void rma_started() noexcept { rma_since_fence_ = true; }
  /// Returns whether messages from before the last fence are still unanswered.
  bool fenced_behind_messages() const noexcept;
  /// Returns whether anything is.
  bool fenced() const noexcept { return has_members() || fenced_behind_messages(); }

  /// The connection failed: everything here ends with it.
  void fail(std::error_code why) noexcept;
  void cancel() noexcept;
  void cancel_of(const remote_region_core& region) noexcept;

 private:
  void member_ended(operation& member, std::error_code outcome) noexcept override;
  bool may_ask(const peer_question& next) const noexcept;
  template <class Action>
  void with_each(const Action& act) noexcept;

  endpoint_core& connection_;
  intrusive_list<peer_question, waiting_tag> asked_;   // sent, the peer has to answer
  intrusive_list<peer_question, waiting_tag> queued_;  // not sent yet
  bool sending_queued_ = false;
  write_epochs writes_;
  intrusive_list<flush_operation, flush_tag> flushes_;
  std::uint64_t fence_ = 0;  // how many there were
  bool rma_since_fence_ = false;
};

}  // namespace ucx::detail
