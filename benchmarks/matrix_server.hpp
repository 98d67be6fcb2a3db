// A process with a server of chosen transports, which publishes "matrix".
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "ucx/context.hpp"

namespace ucx::benchmarks {

/// Forked, on the owner's core. Nothing but sockets and UCX's messages leads to "matrix", unless it
/// is `allocated`, which peers may map.
class matrix_server {
 public:
  enum class memory { callers, allocated };

  /// `bind` as in `server_options`.
  /// REQUIRES: this process has not used UCX yet, and runs one thread.
  matrix_server(const context_options& chosen, const std::string& bind, std::size_t size,
                memory whose = memory::callers);
  matrix_server(const matrix_server&) = delete;
  matrix_server& operator=(const matrix_server&) = delete;
  ~matrix_server();

  const std::string& url() const noexcept { return url_; }
  /// Returns how much of its memory is resident.
  double resident_kilobytes() const;

 private:
  ::pid_t child_ = -1;
  int quit_ = -1;
  std::string url_;
};

}  // namespace ucx::benchmarks
