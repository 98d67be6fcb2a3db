// Two halves of a conversation: one sends messages of one size, the other acknowledges every so
// many of them with one of eight bytes. Ours, raw UCX's and a socket's halves look alike.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "owner_process.hpp"

namespace ucx::benchmarks {

/// By what the messages travel. Sockets know the stream only.
enum class message_way { tag, active, stream };

/// Polled by its thread; has one peer, which is another process.
class half {
 public:
  half() noexcept = default;
  half(const half&) = delete;
  half& operator=(const half&) = delete;
  virtual ~half() = default;

  /// What the peer needs to connect.
  virtual std::vector<std::byte> address() = 0;
  /// Connects; the side that `asks` first.
  virtual void connect(const std::vector<std::byte>& peer, bool asks) = 0;

  /// From now on messages of `size` bytes come this way, `most` of them at once. REQUIRES: nothing
  /// is on its way.
  virtual void begin(message_way way, std::size_t size, unsigned most) = 0;
  /// Sends `bytes`, which stay until `unsent()` is 0.
  virtual void send(std::span<const std::byte> bytes) = 0;
  virtual unsigned unsent() const = 0;
  /// Makes progress, and returns how many messages came since the last call.
  virtual unsigned poll() = 0;
  /// Returns the last message that came.
  virtual std::span<const std::byte> last() const = 0;
};

/// Memory for so many messages of one size, which is used in turns.
class message_places {
 public:
  void resize(std::size_t size, unsigned most) {
    size_ = size;
    most_ = most;
    next_ = 0;
    memory_.resize(size * most);
  }
  std::span<std::byte> next() noexcept { return at(next_++); }
  std::span<std::byte> at(std::size_t number) noexcept {
    return std::span(memory_).subspan(number % most_ * size_, size_);
  }

 private:
  std::size_t size_ = 0;
  std::size_t most_ = 1;
  std::size_t next_ = 0;
  std::vector<std::byte> memory_;
};

std::unique_ptr<half> make_our_half(plane where);
/// UCX by hand, with the transports of ours.
std::unique_ptr<half> make_raw_half(plane where);
/// A TCP connection, whose thread sleeps in the system, or spins.
std::unique_ptr<half> make_socket_half(bool sleeps);

}  // namespace ucx::benchmarks
