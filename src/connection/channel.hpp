// How control messages travel: the protocol knows nothing else of the network.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <system_error>

namespace ucx::detail {

class endpoint_core;

/// Sends messages for a side of the protocol. Under its worker's lock.
class channel {
 public:
  virtual ~channel() = default;
  /// Sends a message, soon; the bytes are copied. Whatever goes wrong ends the channel.
  virtual void send(std::span<const std::byte> message) = 0;
  /// Returns how long a message may be.
  virtual std::size_t longest() const noexcept = 0;
  /// Returns how many bytes of messages the peer has not taken yet.
  virtual std::size_t unsent() const noexcept = 0;
  /// Ends the channel, soon, because the peer did something that is not allowed.
  virtual void blame(std::error_code why, const std::string& words) = 0;
};

/// Receives messages for a side of the protocol. Under its worker's lock, never inside UCX.
class channel_receiver {
 public:
  virtual ~channel_receiver() = default;
  virtual void received(std::span<const std::byte> message) = 0;
  /// The last call: nothing can be sent or will be received any more.
  virtual void ended(std::error_code why) noexcept = 0;
};

/// Takes the control messages of peers that connected by themselves.
class control_server {
 public:
  virtual ~control_server() = default;
  /// Sets the receiver of `peer`, or refuses and sets none.
  virtual void accept(endpoint_core& peer) = 0;
};

}  // namespace ucx::detail
