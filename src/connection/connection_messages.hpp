// The messages of a connection, as the connection knows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "ucx/access.hpp"

namespace ucx {
struct message_handlers;
}

namespace ucx::detail {

class endpoint_core;
class message_link;

/// Made with its connection and gone with it. Everything happens under the worker's lock.
class connection_messages {
 public:
  connection_messages() = default;
  connection_messages(const connection_messages&) = delete;
  connection_messages& operator=(const connection_messages&) = delete;
  virtual ~connection_messages() = default;

  /// For those who send and receive.
  virtual message_link& link() noexcept = 0;

  /// Returns the room that this side grants, in units: said in hello and welcome. It may be little
  /// if the peer is known to borrow more.
  virtual std::uint64_t granted(bool borrows) noexcept = 0;
  /// The peer has introduced itself, and has said how much room it grants: what waits goes out. It
  /// may be of this host, and share memory with this process.
  virtual void open(std::uint64_t room, bool same_host) noexcept = 0;
  /// The connection is lost: what was not here yet will not come.
  virtual void connection_failed() noexcept = 0;
  /// The connection goes, object and all. REQUIRES: it failed, or was closed.
  virtual void end() noexcept = 0;

  /// Sends the messages that wait for room, or for a fence.
  virtual void send_queued() noexcept = 0;
  /// Tells who wants to hear of room, where there was no memory to; returns false where there is
  /// none still.
  virtual bool retell_room() noexcept = 0;
  /// Returns whether something waits that only the peer can end.
  virtual bool awaits_peer() const noexcept = 0;
  virtual bool sends_pending() const noexcept = 0;
  /// Returns the longest message that goes whole while all of the peer's room is free. It is
  /// `piece` at most, and less where the connection is not `watched` for the peer's death.
  virtual std::size_t longest_at_once(bool watched, std::size_t piece) const noexcept = 0;
  /// Returns how long messages of this side go: `rma` or `cma`, else `message`.
  virtual transfer_method long_messages() const = 0;
  /// Returns the keys of the posts that the connection's failure has ended.
  virtual const std::vector<std::uint64_t>& unsent() const noexcept = 0;
  virtual void swap_handlers(std::shared_ptr<message_handlers>& handlers) noexcept = 0;
};

}  // namespace ucx::detail
