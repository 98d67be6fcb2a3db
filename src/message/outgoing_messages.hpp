// The messages that go out over one connection: their numbers, and the peer's room for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <system_error>
#include <vector>

#include "base/intrusive_list.hpp"
#include "base/log_first_n.hpp"
#include "message/send_operation.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

class endpoint_core;
class message_link;
class worker_core;

/// Every message has a number, given when it goes to UCX. It uses units of the window that the peer
/// granted. They come back when the peer's application has taken the message. A message that finds
/// no room waits in a queue. Everything happens under the worker's lock.
///
/// States of the notice of room (`message_handlers::on_writable`):
///
///     from    | to      | when
///     nothing | wanted  | a message found no room, and does not wait for it
///     wanted  | nothing | there is room, and the handler is due
///     wanted  | untold  | there is room, and no memory to say so
///     untold  | wanted  | the connection's clock has it tried again
class outgoing_messages {
 public:
  /// Messages up to this go whole. Asking first costs a round trip, and saves the receiver a copy
  /// where it does not wait for the message yet.
  static constexpr std::size_t always_whole = std::size_t{64} << 10U;
  /// Messages up to this go whole over a network while half of the window stays free. Messages that
  /// wait for their receiver shall not keep others from theirs.
  static constexpr std::size_t longest_whole = std::size_t{256} << 10U;

  /// Messages from here on may be read by RMA hardware where they lie. Below, registering them
  /// costs more than what that saves.
  static constexpr std::size_t least_lent = std::size_t{1} << 20U;
  /// Longer ones go in pieces: to lock their pages would keep the worker for too long.
  static constexpr std::size_t most_lent = std::size_t{256} << 20U;

  outgoing_messages(endpoint_core& endpoint, message_link& link) noexcept;
  outgoing_messages(const outgoing_messages&) = delete;
  outgoing_messages& operator=(const outgoing_messages&) = delete;

  /// The peer grants so many units.
  void open(std::uint64_t room) noexcept;

  /// Sends a short message at once, or a copy of it soon; returns false where it can not, or is not
  /// short.
  bool send_short(message_kind kind, std::uint64_t tag, std::span<const std::byte> header,
                  std::span<const std::byte> bytes);
  /// Sends what can be sent at once, or lets it wait for room.
  void start(send_operation& send);
  /// Sends queued messages as far as there is room, and tells the program of room if it wants that.
  void send_queued() noexcept;
  /// Tells of room, where there was no memory to; returns false where there is none still.
  bool retell_room() noexcept;
  /// Returns whether something waits for room, or for the peer's answer.
  bool are_pending() const noexcept { return !queued_.empty() || !unanswered_.empty(); }

  // For the sends.
  /// It is in no list any more.
  void leave(send_operation& send) noexcept;
  /// It was announced, or waits to be acknowledged: the peer's answer is told to it.
  void await_answer(send_operation& send) noexcept;
  /// Everything that a queued send had to say was said; those behind it are next.
  void all_said(send_operation& send) noexcept;
  std::uint64_t next_number() noexcept { return next_number_++; }
  /// Returns the number of the last message that UCX was given.
  std::uint64_t last_number() const noexcept { return next_number_ - 1; }
  /// UCX did not take what had the last number, and so many units of room.
  void not_said(std::size_t units) noexcept {
    --next_number_;
    room_ += units;
  }
  /// Takes so many units of the peer's room; returns whether there were as many.
  bool take_room(std::size_t units) noexcept;
  bool has_room(std::size_t units) noexcept;
  /// A message of so many bytes is announced, because the peer's room is small.
  void announced(std::size_t size) noexcept {
    if (size <= always_whole && units_of(size) > room_granted_ / 2) want_more();
  }
  /// Returns whether a message of so many bytes, header and all, goes whole: else it is announced.
  bool goes_whole(std::size_t size) const noexcept;
  /// Returns whether a message of this size would have to wait; who asks wants to hear of room.
  bool is_full(std::size_t header, std::size_t payload) noexcept;
  /// Returns how much of the byte stream may go in one message.
  std::size_t longest_chunk() const noexcept {
    return std::max<std::size_t>(room_granted_ / 4, 2) * window_unit - window_unit;
  }
  /// Returns the longest message that goes whole while all of the peer's room is free.
  std::size_t longest_at_once(bool watched, std::size_t piece) const noexcept {
    const std::size_t units = std::max<std::size_t>(room_granted_ / 2, 1) - 1;
    return std::min({units * window_unit, piece, watched ? longest_whole : always_whole});
  }
  /// The peer is not to wait for it any more.
  void withdraw(const send_operation& send, std::error_code why) noexcept;

  // Answers of the peer.
  /// Returns whether it may be; if not, the peer is blamed.
  bool add_room(std::size_t units);
  void lent_more(std::uint64_t units);
  void lent_less(std::uint64_t units);
  void recalled(std::uint64_t loan);
  void answered(const parcel& said);

  /// The connection failed before a post with this key had ended.
  void left_unsent(std::uint64_t key) noexcept {
    try {
      unsent_.push_back(key);
    } catch (const std::bad_alloc&) {  // its handler is told all the same
    }
  }
  const std::vector<std::uint64_t>& unsent() const noexcept { return unsent_; }

 private:
  enum class news { nothing, wanted, untold };
  /// As `send.go()`; where memory is short the connection fails, and the send with it.
  bool go(send_operation& send) noexcept;
  void want_more() noexcept;
  send_operation* find_unanswered(std::uint64_t number) const noexcept;
  void tell_unknown(const parcel& said);

  endpoint_core& endpoint_;
  message_link& link_;
  const std::size_t short_below_;  // bytes of what may go without an operation
  std::uint64_t next_number_ = 1;
  std::size_t room_ = 0;          // of the peer's, in units
  std::size_t room_granted_ = 0;  // what it lends, of which so much may be used
  intrusive_list<send_operation, send_tag> queued_;
  intrusive_list<send_operation, send_tag> unanswered_;
  bool sending_queued_ = false;
  bool wants_more_ = false;  // and the peer was told
  news room_news_ = news::nothing;
  log_first_n unknown_;                // numbers that the peer has no handler for, and were logged
  std::vector<std::uint64_t> unsent_;  // keys of posts that the connection's failure ended
};

}  // namespace ucx::detail
