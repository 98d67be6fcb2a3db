// Streams of bytes from and to a `socket_owner`: by the system's calls, by Asio's iostream
// or by TLS (`bare_tls.hpp`).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "socket_owner.hpp"

namespace ucx::benchmarks {

/// A connection by which bytes go and come in order.
class byte_connection {
 public:
  byte_connection() noexcept = default;
  byte_connection(const byte_connection&) = delete;
  byte_connection& operator=(const byte_connection&) = delete;
  virtual ~byte_connection() = default;

  /// Returns when all of it is there, or gone. Errors: std::runtime_error.
  virtual void read(std::span<std::byte> into) = 0;
  virtual void write(std::span<const std::byte> from) = 0;
  /// Sends what is buffered.
  virtual void push() = 0;
};

std::unique_ptr<byte_connection> connect_socket(const ::sockaddr_in& owner);
/// A `boost::asio::ip::tcp::iostream`; null where the suite was built without Boost.
std::unique_ptr<byte_connection> connect_asio(const ::sockaddr_in& owner);

/// Reads and writes an owner's memory from its beginning to its end, round and round.
class socket_client {
 public:
  socket_client(const socket_owner& owner, std::unique_ptr<byte_connection> connection)
      : socket_client(owner.size(), std::move(connection)) {}
  socket_client(std::size_t size, std::unique_ptr<byte_connection> connection)
      : connection_(std::move(connection)), size_(size) {}

  /// Returns the calls of `call` bytes in a second; a pass of writing ends with a flush.
  double read(std::size_t call, std::chrono::nanoseconds duration);
  double write(std::size_t call, std::span<const std::byte> from,
               std::chrono::nanoseconds duration);
  /// Reads `into.size()` bytes once.
  void read_one(std::uint64_t offset, std::span<std::byte> into);

 private:
  void ask(std::uint64_t verb, std::uint64_t offset, std::uint64_t length);
  void flush();

  std::unique_ptr<byte_connection> connection_;
  std::size_t size_;
  std::vector<std::byte> into_;
};

}  // namespace ucx::benchmarks
