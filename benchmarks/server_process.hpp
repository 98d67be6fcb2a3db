// A process with a server as users make it, and the same memory by hand beside it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include "ucx/access.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::benchmarks {

/// A forked process, pinned to `owner_core` (with memory of a device to half of the machine), that
/// publishes `size` bytes of the pattern as "matrix", with all the defaults of a server by UCX; and
/// exposes them by hand over a second worker of the same mode.
class server_process {
 public:
  /// Whose memory "matrix" is: its own program's, in small pages or in huge ones; the server's,
  /// which peers may map; or that of the first CUDA device.
  enum class memory { callers, callers_huge, allocated, device };

  /// Also publishes the directory `store`, if it has a name, as the writable store "store".
  /// REQUIRES: this process has not used UCX yet, and runs one thread.
  explicit server_process(std::size_t size, memory whose = memory::callers,
                          access granted = access::read, const std::filesystem::path& store = {});
  server_process(const server_process&) = delete;
  server_process& operator=(const server_process&) = delete;
  ~server_process();

  const std::string& url() const noexcept { return url_; }
  const socket_address& by_hand() const noexcept { return address_; }
  const remote_descriptor& descriptor() const noexcept { return descriptor_; }
  /// Returns how much processor time it has used so far.
  std::chrono::nanoseconds processor_time() const;
  /// Returns how much of its memory is resident.
  double resident_kilobytes() const;

 private:
  ::pid_t child_ = -1;
  int quit_ = -1;
  std::string url_;
  socket_address address_;
  remote_descriptor descriptor_;
};

}  // namespace ucx::benchmarks
