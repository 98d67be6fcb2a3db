// The owner's memory by TLS as a program would write it with OpenSSL: what the carrier's is beside.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "socket_client.hpp"

namespace ucx::benchmarks {

/// How OpenSSL reaches the socket: by its own BIO, a record at a time; the same, which reads ahead;
/// or by one that reads and sends a quarter of a megabyte at a time.
enum class tls_loop : unsigned char { records, read_ahead, batches };

/// A forked process as `socket_owner`'s, by TLS 1.3 with a key that both sides have. A connection's
/// first byte says its loop.
class bare_tls_owner {
 public:
  /// REQUIRES: this process runs one thread.
  explicit bare_tls_owner(std::size_t size);
  bare_tls_owner(const bare_tls_owner&) = delete;
  bare_tls_owner& operator=(const bare_tls_owner&) = delete;
  ~bare_tls_owner();

  const ::sockaddr_in& address() const noexcept { return address_; }
  std::size_t size() const noexcept { return size_; }

 private:
  ::pid_t child_ = -1;
  int quit_ = -1;
  std::size_t size_;
  ::sockaddr_in address_ = {};
};

/// Connects, and shakes hands.
std::unique_ptr<byte_connection> connect_tls(const ::sockaddr_in& owner, tls_loop loop);

}  // namespace ucx::benchmarks
