// The messages that come over one connection: their order, this side's room for them, and who
// waits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <system_error>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "message/arrived_message.hpp"
#include "message/cma_read.hpp"
#include "message/receive_operation.hpp"
#include "message/stream_receive.hpp"
#include "message/untaken_budget.hpp"
#include "wire/brief_parcel.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

class endpoint_core;
class message_exchange;
class message_link;

/// Delivered by their numbers, whatever UCX does. They use units of the room that this side lends.
/// The units are given back when the application has taken the messages. Everything happens under
/// the worker's lock.
class incoming_messages final : private room_account {
 public:
  /// `window` is how many bytes the peer may leave here at most.
  incoming_messages(endpoint_core& endpoint, message_link& link, std::size_t window) noexcept;
  incoming_messages(const incoming_messages&) = delete;
  incoming_messages& operator=(const incoming_messages&) = delete;

  /// Returns the room that this side lends at first, in units. A peer that does not `borrow`, or of
  /// which that is not known, may never get more.
  std::uint64_t first_loan(bool borrows) noexcept;
  /// The peer may be of this host, and share memory with this process.
  void open(bool same_host) noexcept;
  /// The connection is lost: what was not here yet will not come.
  void connection_failed() noexcept;
  /// The connection goes.
  void end() noexcept;

  // Inside UCX's callback: parcels about messages that the peer sends. Returns whether `lasting`,
  // UCX's own memory behind the payload, was kept.
  bool arrived(const read_parcel& read, std::span<const std::byte> payload, void* lasting);
  bool arrived(const read_brief_parcel& read, std::span<const std::byte> payload, void* lasting);
  void piece(const parcel& said, std::span<const std::byte> payload);
  void withdrawn(const parcel& said);

  // Answers to the peer.
  void grant(const parcel& announced, std::uint64_t receive) noexcept;
  void refuse(const parcel& announced, std::error_code why) noexcept;
  void tell_taken(const parcel& said) noexcept { grant(said, 0); }
  /// So many units of what the peer sent are free again.
  void consumed(std::size_t units) noexcept {
    to_give_back_ += units;
    if (to_give_back_ >= give_back_at_) settle();
  }
  /// Returns what is to be given back to the peer, for a parcel that goes out now.
  std::uint16_t take_credit(std::uint16_t most = 0xffff) noexcept;
  /// It did not go out.
  void return_credit(std::uint16_t credit) noexcept {
    to_give_back_ += credit;
    used_ += credit;
  }

  // Words of the peer about its loan.
  void wanted() noexcept;
  void given_back(std::uint64_t units) noexcept;

  // The messages that wait for a receive.
  void add(arrived_message& kept) noexcept { arrived_.push_back(kept); }
  void remove(arrived_message& gone) noexcept { arrived_.remove(gone); }
  /// All that are kept, also those in somebody's hands, in the order in which they came.
  const intrusive_list<arrived_message, arrival_tag>& all() const noexcept { return arrived_; }
  // Receives whose message is on its way.
  void add(receive_operation& receiving) noexcept { receiving_.push_back(receiving); }
  void remove(receive_operation& ended) noexcept { receiving_.remove(ended); }
  // The byte stream.
  void start_stream(stream_receive& receive);
  void remove_from_stream(stream_receive& ended) noexcept { stream_receives_.remove(ended); }

  /// Begins to read a message that is lent; returns whether that can be done.
  bool borrow(const cma_read& loan) noexcept;

 private:
  /// The next message came, and takes so many units of this side's room.
  void take_turn(std::size_t units) noexcept {
    ++expected_;
    used_ += units;
  }
  bool deliver_at_once(const read_brief_parcel& heard, std::span<const std::byte> payload);
  bool deliver(const read_parcel& heard, std::span<const std::byte> payload, void* lasting,
               std::size_t units);
  void deliver(arrived_message& kept) noexcept;
  void give(arrived_message& kept);
  void deliver_held_back();
  std::size_t feed_stream(std::span<const std::byte> bytes);
  void read_stream();
  void blame_for_room() noexcept;
  void log_dropped(std::size_t count) const noexcept;
  message_exchange& exchange() const noexcept;
  untaken_budget& budget() const noexcept;
  void more_lent(std::size_t units) noexcept override;
  void recalled(std::size_t loan) noexcept override;
  std::size_t unused() const noexcept override {
    return lent() > used_ ? lent() - used_ : 0;  // a peer that is blamed has used more
  }
  bool is_overdue() const noexcept override;
  void note_loan() noexcept { give_back_at_ = wants_ || gone_ ? 0 : lent() / 4; }
  void ask(bool taken) noexcept;
  void settle() noexcept;

  endpoint_core& endpoint_;
  message_link& link_;
  const std::size_t most_;        // units that the peer may have
  std::size_t give_back_at_ = 0;  // the peer is told from so many units on

  bool wants_ = false;  // the peer said so, and has got no more yet
  bool gone_ = false;   // nothing more comes

  clock::time_point answers_until_;  // a recall

  std::size_t used_ = 0;          // by the peer, of what it was lent
  std::size_t to_give_back_ = 0;  // of that, the peer was not told yet
  std::uint64_t expected_ = 1;
  std::map<std::uint64_t, arrived_message*> held_back_;
  intrusive_list<arrived_message, arrival_tag> arrived_;
  intrusive_list<arrived_message, arrival_order_tag> stream_;
  intrusive_list<stream_receive, stream_tag> stream_receives_;
  intrusive_list<receive_operation, posted_tag> receiving_;
  enum class loans { untried, work, fail } loans_ = loans::fail;  // of the peer's
};

}  // namespace ucx::detail
