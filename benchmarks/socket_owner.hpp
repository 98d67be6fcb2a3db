// The owner's memory over bare TCP sockets: what a programmer would write without RMA.
#pragma once

#include <netinet/in.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace ucx::benchmarks {

/// What a client of a `socket_owner` sends. Of a write the bytes follow; the other two are
/// answered: by the bytes, and by eight zeros when all that was written before is in the memory.
struct socket_question {
  enum : std::uint64_t { read, write, flush };
  std::uint64_t verb = read;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// A forked process with `size` bytes of the pattern, and a thread for each connection, which
/// sleeps in the system while nothing is asked for.
class socket_owner {
 public:
  /// REQUIRES: this process runs one thread.
  explicit socket_owner(std::size_t size);
  socket_owner(const socket_owner&) = delete;
  socket_owner& operator=(const socket_owner&) = delete;
  ~socket_owner();

  const ::sockaddr_in& address() const noexcept { return address_; }
  std::size_t size() const noexcept { return size_; }
  /// Returns how much processor time it has used so far.
  std::chrono::nanoseconds processor_time() const;

 private:
  ::pid_t child_ = -1;
  int quit_ = -1;
  std::size_t size_;
  ::sockaddr_in address_ = {};
};

}  // namespace ucx::benchmarks
