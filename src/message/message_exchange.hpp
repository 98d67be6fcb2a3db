// Where the messages of a worker and those who wait for them meet.
#pragma once

#include <cstdint>
#include <system_error>

#include "base/id_table.hpp"
#include "base/intrusive_list.hpp"
#include "message/active_handlers.hpp"
#include "message/arrived_messages.hpp"
#include "message/message_loans.hpp"
#include "message/receive_operation.hpp"
#include "message/send_operation.hpp"
#include "message/untaken_budget.hpp"
#include "ucx/receive_target.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

/// Everything happens under the worker's lock.
class message_exchange {
 public:
  explicit message_exchange(worker_core& worker) noexcept;
  /// Frees what UCX never gave back. REQUIRES: UCX's worker is gone.
  ~message_exchange();
  message_exchange(const message_exchange&) = delete;
  message_exchange& operator=(const message_exchange&) = delete;

  /// Gives UCX back what is kept of it; the worker ends.
  void close() noexcept;

  // Receives.
  /// Takes the first message that is here already, or waits for one.
  void post(receive_operation& receive);
  void remove(receive_operation& posted) noexcept { posted_.remove(posted); }
  /// Returns the first receive that takes a message of this tag and length, which waits no more; or
  /// nothing.
  receive_operation* match(const endpoint_core& from, std::uint64_t tag, std::uint64_t length);
  /// Has a message that the program holds received; one that lacks a buffer waits for that.
  void receive(receive_operation& receive, arrived_message& held);
  /// Tries again those that waited for a buffer.
  void buffers_came();
  void needs_no_buffer(receive_operation& lacking) noexcept;
  /// Messages went, or are lost: receives that waited for a buffer because of them give up their
  /// places in line.
  void leave_lines() noexcept;
  /// Returns whether the message is here for which `lacking` waits for a buffer.
  bool is_here(const receive_operation& lacking) const noexcept;
  /// The receives whose message is on its way.
  id_table<receive_operation>& receiving() noexcept { return receiving_; }

  // Messages.
  /// Those that have come and have not been taken. When some of them went, or are lost:
  /// `leave_lines`.
  arrived_messages& arrived() noexcept { return arrived_; }
  /// Takes one that waits out of the list, of those that receives may have waited for.
  void take_by_hand(arrived_message& waiting) noexcept;
  /// The holder, which took it out, does not want it any more.
  void let_go(arrived_message& held) noexcept;
  /// The sender will not send it (any more), and knows.
  void withdrawn(arrived_message& announced, std::error_code why) noexcept;
  /// Its connection is lost, and with it what was not here. It keeps its place in the order: the
  /// receive that takes it fails, so that no later message is taken for it. Then `leave_lines`.
  void lost(arrived_message& announced, std::error_code why) noexcept;
  /// Those that are read where they lie.
  message_loans& loans() noexcept { return loans_; }
  active_handlers& handlers() noexcept { return handlers_; }
  /// The room for messages that are not taken.
  untaken_budget& budget() noexcept { return budget_; }
  /// Queues a call of the handler that its number has then.
  void call_handler(arrived_message& active);

  // Sends that UCX has the header of.
  void lent(send_operation& sent) noexcept { lent_.push_back(sent); }
  void returned(send_operation& sent) noexcept { lent_.remove(sent); }

 private:
  bool has_place(receive_operation& posted, std::uint64_t length);
  void try_again(receive_operation& lacking);

  worker_core& worker_;
  intrusive_list<receive_operation, posted_tag> posted_;
  intrusive_list<receive_operation, lacking_tag> lacking_;
  id_table<receive_operation> receiving_;
  message_loans loans_;
  active_handlers handlers_;
  arrived_messages arrived_;
  untaken_budget budget_;
  intrusive_list<send_operation, lent_tag> lent_;
};

}  // namespace ucx::detail
