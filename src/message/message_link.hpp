// The messages of one connection: their order, the room for them at either side, and who waits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <system_error>
#include <vector>

#include "base/first_few.hpp"
#include "base/intrusive_list.hpp"
#include "connection/connection_messages.hpp"
#include "message/arrived_message.hpp"
#include "message/borrowing.hpp"
#include "message/receive_operation.hpp"
#include "message/send_operation.hpp"
#include "ucx/message_handlers.hpp"
#include "wire/brief_parcel.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

class endpoint_core;
class message_exchange;

/// Order: every message has a number, given when it goes to UCX, and is delivered by it, whatever
/// UCX does. Room: a sender uses units of the window that its peer granted, and gets them back when
/// the peer's application has taken the message. Everything happens under the worker's lock.
class message_link final : public connection_messages {
 public:
  /// Messages up to this go whole. Asking first costs a round trip, and saves the receiver a copy
  /// where it does not wait for the message yet.
  static constexpr std::size_t always_whole = std::size_t{64} << 10U;
  /// Messages up to this go whole over a network while half of the window stays free: what waits
  /// for its receiver shall not keep others from theirs.
  static constexpr std::size_t longest_whole = std::size_t{256} << 10U;

  /// Makes the messages' side of a connection; `window` is how many bytes its peer may leave here.
  message_link(endpoint_core& endpoint, std::size_t window);
  ~message_link() override;

  message_link& link() noexcept override { return *this; }

  std::uint64_t granted() const noexcept override { return granted_; }
  void open(std::uint64_t room, bool same_host) noexcept override;
  void connection_failed() noexcept override;
  void end() noexcept override;

  // Sending.
  /// Sends a short message at once, or a copy of it soon; returns false where it can not, or is not
  /// short.
  bool send_short(message_kind kind, std::uint64_t tag, std::span<const std::byte> header,
                  std::span<const std::byte> bytes);
  /// Sends what can be sent at once, or lets it wait for room.
  void start(send_operation& send);
  void leave(send_operation& send) noexcept;
  /// What waits for room goes as far as there is some, and who waits to hear of it is told.
  void send_queued() noexcept override;
  /// It was announced, or waits to be acknowledged: the peer's answer is told to it.
  void await_answer(send_operation& send) noexcept;
  /// Everything that a queued send had to say was said; those behind it are next.
  void all_said(send_operation& send) noexcept;
  std::uint64_t next_number() noexcept { return next_number_++; }
  /// Takes so many units of the peer's room; returns whether there were as many.
  bool take_room(std::size_t units) noexcept;
  bool has_room(std::size_t units) const noexcept;
  /// Returns whether a message of so many bytes, header and all, goes whole: else it is announced.
  bool goes_whole(std::size_t size) const noexcept;
  std::size_t longest_at_once(bool watched, std::size_t piece) const noexcept override {
    const std::size_t units = std::max<std::size_t>(room_granted_ / 2, 1) - 1;
    return std::min({units * window_unit, piece, watched ? longest_whole : always_whole});
  }
  /// Returns whether a message of this size would have to wait; who asks wants to hear of room.
  bool is_full(std::size_t header, std::size_t payload) noexcept;
  /// Returns how much of the byte stream may go in one message.
  std::size_t longest_chunk() const noexcept {
    return std::max<std::size_t>(room_granted_ / 4, 2) * window_unit - window_unit;
  }
  /// Returns what is to be given back to the peer, for a parcel that goes out now.
  std::uint16_t take_credit(std::uint16_t most = 0xffff) noexcept;
  void withdraw(const send_operation& send, std::error_code why) noexcept;
  /// Returns whether the peer may read messages where they lie.
  bool lends() const noexcept;

  // Receiving.
  /// A parcel of this connection came, inside UCX's callback; returns whether `lasting`, UCX's own
  /// memory behind the payload, was kept.
  bool received(const read_parcel& read, std::span<const std::byte> payload, void* lasting);
  bool received(const read_brief_parcel& read, std::span<const std::byte> payload, void* lasting);
  /// Something of the peer's, or for it, got lost for want of memory: the connection ends.
  void blame_memory() noexcept;
  void grant(const parcel& announced, std::uint64_t receive) noexcept;
  void refuse(const parcel& announced, std::error_code why) noexcept;
  void tell_taken(const parcel& said) noexcept { grant(said, 0); }
  /// So many units of what the peer sent are free again.
  void consumed(std::size_t units) noexcept;
  void add(arrived_message& kept) noexcept { arrived_.push_back(kept); }
  void remove(arrived_message& gone) noexcept { arrived_.remove(gone); }

  /// Begins to read a message that is lent; returns whether that can be done.
  bool borrow(const borrowing& loan) noexcept;

  // The byte stream.
  void start_stream(receive_operation& receive);
  void remove(receive_operation& stream) noexcept { stream_receives_.remove(stream); }

  // Receives whose message is on its way.
  void add(receive_operation& receiving) noexcept { receiving_.push_back(receiving); }
  void remove_receiving(receive_operation& ended) noexcept { receiving_.remove(ended); }

  // What waits for the peer, for its heartbeat; and for close().
  void wait_began() noexcept { ++waiting_; }
  void wait_ended() noexcept { --waiting_; }
  bool awaits_peer() const noexcept override {
    return waiting_ > 0 || !queued_.empty() || !unanswered_.empty();
  }
  bool sends_pending() const noexcept override { return !queued_.empty() || !unanswered_.empty(); }

  /// The connection failed before a post with this key had ended.
  void left_unsent(std::uint64_t key) noexcept {
    try {
      unsent_.push_back(key);
    } catch (const std::bad_alloc&) {  // its handler is told all the same
    }
  }
  const std::vector<std::uint64_t>& unsent() const noexcept override { return unsent_; }

  void swap_handlers(std::shared_ptr<message_handlers>& handlers) noexcept override {
    handlers_.swap(handlers);
  }
  /// The user's; they may be replaced while one of them runs.
  std::shared_ptr<message_handlers> handlers() const noexcept { return handlers_; }

 private:
  /// As `send.go()`; where memory is short the connection fails, and the send with it.
  bool go(send_operation& send) noexcept;
  void add_room(std::size_t units);
  void answered(const parcel& said);
  send_operation* find_unanswered(std::uint64_t number) const noexcept;
  bool arrived(const read_parcel& read, std::span<const std::byte> payload, void* lasting);
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
  void piece(const parcel& said, std::span<const std::byte> payload);
  void withdrawn(const parcel& said);
  void send(parcel& said) noexcept;
  void tell_unknown(const parcel& said);
  void log_dropped(std::size_t count) const noexcept;
  void blame(const char* words) noexcept;
  message_exchange& exchange() const noexcept;

  endpoint_core& endpoint_;
  // Sending.
  const std::size_t short_below_;  // bytes of what may go without an operation
  std::uint64_t next_number_ = 1;
  std::size_t room_ = 0;          // of the peer's, in units
  std::size_t room_granted_ = 0;  // at the beginning
  intrusive_list<send_operation, send_tag> queued_;
  intrusive_list<send_operation, send_tag> unanswered_;
  bool sending_queued_ = false;
  bool room_wanted_ = false;
  first_few unknown_;                  // numbers that the peer has no handler for, and were logged
  std::vector<std::uint64_t> unsent_;  // keys of posts that the connection's failure ended
  // Receiving.
  std::size_t granted_;
  std::size_t used_ = 0;          // by the peer, of what was granted
  std::size_t to_give_back_ = 0;  // of that, the peer was not told yet
  std::uint64_t expected_ = 1;
  std::map<std::uint64_t, arrived_message*> held_back_;
  intrusive_list<arrived_message, arrival_tag> arrived_;
  intrusive_list<arrived_message, arrival_order_tag> stream_;
  intrusive_list<receive_operation, posted_tag> stream_receives_;
  intrusive_list<receive_operation, posted_tag> receiving_;
  std::size_t waiting_ = 0;
  std::shared_ptr<message_handlers> handlers_;
  bool same_host_ = false;
  enum class loans { untried, work, fail } loans_ = loans::untried;  // of the peer's
  bool given_up_ = false;  // what comes now is behind something that got lost
};

}  // namespace ucx::detail
