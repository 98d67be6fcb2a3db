// The messages of one connection: those that go out, those that come, and what is common to them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "connection/connection_messages.hpp"
#include "message/incoming_messages.hpp"
#include "message/outgoing_messages.hpp"
#include "ucx/payload.hpp"
#include "wire/brief_parcel.hpp"
#include "wire/parcel.hpp"

namespace ucx::detail {

class endpoint_core;

/// Takes the connection's parcels, and hands each to the side that it is for. Everything happens
/// under the worker's lock. It has a function more than a class should: half of them implement
/// `connection_messages`.
class message_link final : public connection_messages {
 public:
  /// Makes the messages' side of a connection; `window` is how many bytes its peer may leave here.
  message_link(endpoint_core& endpoint, std::size_t window);
  ~message_link() override;

  outgoing_messages& outgoing() noexcept { return outgoing_; }
  incoming_messages& incoming() noexcept { return incoming_; }

  /// A parcel of this connection came, inside UCX's callback; returns whether `lasting`, UCX's own
  /// memory behind the payload, was kept.
  bool received(const read_parcel& read, std::span<const std::byte> payload, void* lasting);
  bool received(const read_brief_parcel& read, std::span<const std::byte> payload, void* lasting);
  /// Sends a parcel, with what is to be given back to the peer.
  void send(parcel& said) noexcept;

  /// The peer is to blame: the connection ends.
  void blame(const char* words) noexcept;
  /// Something of the peer's, or for it, got lost for want of memory: likewise.
  void blame_memory(const char* words = "no memory for a message") noexcept;
  /// Returns whether what comes now is behind something that got lost.
  bool has_given_up() const noexcept { return given_up_; }

  /// Returns whether the two sides tell each other of changes of the room that they lend.
  bool is_flexible() const noexcept;
  /// Tells the peer of one.
  void say(loan_change what, std::size_t units) noexcept;
  /// Returns whether the peer may read messages where they lie.
  bool lends() const noexcept;
  /// Returns whether hardware of this connection reads messages where they lie, between hosts.
  bool has_rma() const;
  /// Returns whether the peer may read messages so.
  bool offers_keys() const;
  // Operations that wait for the peer, for its heartbeat.
  void wait_began() noexcept { ++waiting_; }
  void wait_ended() noexcept { --waiting_; }
  // Calls of the peer's functions: an orderly end of the connection waits for them, too.
  void call_began() noexcept {
    wait_began();
    ++calls_;
  }
  void call_ended() noexcept {
    wait_ended();
    --calls_;
  }
  /// The user's; they may be replaced while one of them runs.
  const std::shared_ptr<message_handlers>& handlers() const noexcept { return handlers_; }

  // For the connection.
  message_link& link() noexcept override { return *this; }
  std::uint64_t granted(bool borrows) noexcept override { return incoming_.first_loan(borrows); }
  void open(std::uint64_t room, bool same_host) noexcept override;
  void connection_failed() noexcept override { incoming_.connection_failed(); }
  void end() noexcept override { incoming_.end(); }
  void send_queued() noexcept override { outgoing_.send_queued(); }
  bool retell_room() noexcept override { return outgoing_.retell_room(); }
  bool awaits_peer() const noexcept override { return waiting_ > 0 || outgoing_.are_pending(); }
  bool sends_pending() const noexcept override { return outgoing_.are_pending() || calls_ > 0; }
  std::size_t longest_at_once(bool watched, std::size_t piece) const noexcept override {
    return outgoing_.longest_at_once(watched, piece);
  }
  transfer_method long_messages() const override;
  const std::vector<std::uint64_t>& unsent() const noexcept override { return outgoing_.unsent(); }
  void swap_handlers(std::shared_ptr<message_handlers>& handlers) noexcept override {
    handlers_.swap(handlers);
  }

 private:
  void told_of_loan(const parcel& said);

  endpoint_core& endpoint_;
  outgoing_messages outgoing_;
  incoming_messages incoming_;
  std::shared_ptr<message_handlers> handlers_;
  std::size_t waiting_ = 0;
  bool same_host_ = false;
  bool given_up_ = false;
  std::uint32_t calls_ = 0;
};

}  // namespace ucx::detail
