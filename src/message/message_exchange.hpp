// Where the messages of a worker and those who wait for them meet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "base/id_table.hpp"
#include "base/intrusive_list.hpp"
#include "message/active_handlers.hpp"
#include "message/arrived_message.hpp"
#include "message/receive_operation.hpp"
#include "message/send_operation.hpp"
#include "ucx/tag_match.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

/// Everything happens under the worker's lock.
class message_exchange {
 public:
  explicit message_exchange(worker_core& worker) noexcept : worker_(worker), handlers_(worker) {}
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
  /// This one reads its message where it lies: a part in each round; and no more.
  void borrow(receive_operation& receive) noexcept;
  void borrowed(receive_operation& receive) noexcept;
  /// Reads on, in turn, as much as a round may take. REQUIRES: one borrows.
  void read_loans();

  // Messages.
  /// Makes a message of a parcel; keeps the payload of UCX's if it lasts and is worth it, else a
  /// copy. Returns nothing when out of memory.
  arrived_message* keep(endpoint_core& from, const read_parcel& read,
                        std::span<const std::byte> payload, void* lasting, std::size_t units);
  /// Nobody waits for it: until somebody does.
  void add(arrived_message& waiting) noexcept { waiting_.push_back(waiting); }
  /// Returns the first message that waits, of `from` or of anybody; or nothing.
  arrived_message* find(const endpoint_core* from, const tag_match& wanted) const noexcept;
  /// Takes one that waits out of the list, for who will `discard()` it.
  void take_out(arrived_message& waiting) noexcept;
  /// The same, of one that receives may have waited for.
  void take_by_hand(arrived_message& waiting) noexcept;
  /// Who took it out does not want it any more.
  void let_go(arrived_message& held) noexcept;
  /// Somebody has it, and who waits for that is told.
  void matched(arrived_message& found) noexcept;
  /// It is over: its room is given back, and a sender who still waits is told `why`.
  void discard(arrived_message& gone, errc why) noexcept;
  /// The sender will not send it (any more), and knows.
  void withdrawn(arrived_message& announced, std::error_code why) noexcept;
  /// Its connection is lost, and with it what was not here. It keeps its place in the order: the
  /// receive that takes it fails, so that nobody gets what is behind it for it. Then `leave_lines`.
  void lost(arrived_message& announced, std::error_code why) noexcept;
  /// Its connection is gone, object and all. It may still be taken, within a bound, if those before
  /// it had `room`; returns whether. Then `leave_lines`.
  bool orphan(arrived_message& left, bool room) noexcept;

  /// Who takes active messages.
  active_handlers& handlers() noexcept { return handlers_; }
  /// Queues a call of the handler that its number has then.
  void call_handler(arrived_message& active);

  /// Returns the token of the next message that is lent.
  std::uint64_t next_token() noexcept { return ++last_token_ == 0 ? ++last_token_ : last_token_; }

  // Sends that UCX has the header of.
  void lent(send_operation& sent) noexcept { lent_.push_back(sent); }
  void returned(send_operation& sent) noexcept { lent_.remove(sent); }

 private:
  bool has_place(receive_operation& posted, std::uint64_t length);
  void try_again(receive_operation& lacking);
  arrived_message* take_idle();
  void free(arrived_message& gone) noexcept;

  worker_core& worker_;
  intrusive_list<receive_operation, posted_tag> posted_;
  intrusive_list<receive_operation, lacking_tag> lacking_;
  id_table<receive_operation> receiving_;
  intrusive_list<receive_operation, borrowing_tag> borrowing_;
  std::uint64_t last_token_ = 0;
  intrusive_list<arrived_message, arrival_order_tag> waiting_;
  active_handlers handlers_;
  std::vector<std::unique_ptr<arrived_message>> all_;
  std::vector<arrived_message*> idle_;
  std::size_t orphaned_units_ = 0;
  intrusive_list<send_operation, lent_tag> lent_;
};

}  // namespace ucx::detail
