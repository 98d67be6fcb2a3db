// The control messages of a connection: between a client and a server of names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>

namespace ucx::detail {

class channel_receiver;
class endpoint_core;

/// One receiver hears what the peer sends, each message in its turn among those of other peers. A
/// part of the connection; everything happens under the worker's lock.
class endpoint_control {
 public:
  /// Messages are no longer than this, and fit one segment of the transport.
  static constexpr std::size_t most = std::size_t{64} << 10U;

  explicit endpoint_control(endpoint_core& connection) noexcept : connection_(connection) {}
  endpoint_control(const endpoint_control&) = delete;
  endpoint_control& operator=(const endpoint_control&) = delete;

  /// Not owned: it is told of the end, unless it was taken away before.
  void set_receiver(channel_receiver* receiver) noexcept { receiver_ = receiver; }
  /// Returns how long a message may be.
  std::size_t longest() const noexcept;

  void send(std::span<const std::byte> message);
  void sent(std::size_t bytes) noexcept { unsent_ -= bytes; }
  /// Returns how many bytes the peer has not taken yet.
  std::size_t unsent() const noexcept { return unsent_; }

  /// A message came, inside UCX's callback: it is delivered afterwards.
  void arrived(std::uint64_t length, std::span<const std::byte> message);
  /// The connection is over: so it is for the receiver.
  void end(std::error_code why) noexcept;

 private:
  void deliver(std::span<const std::byte> message);
  bool has_room(std::span<const std::byte> message);

  endpoint_core& connection_;
  channel_receiver* receiver_ = nullptr;
  std::size_t unsent_ = 0;
};

}  // namespace ucx::detail
