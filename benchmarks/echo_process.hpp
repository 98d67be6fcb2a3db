// A process that sends back to each of its peers what comes from it.
#pragma once

#include <sys/types.h>

#include <string>

#include "ucx/context.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::benchmarks {

/// Returns options of a context for messages over TCP, with segments of `segment` as UCX spells
/// sizes ("256k"); an empty one leaves them to the environment, and to the library.
context_options options_with_segments(const std::string& segment);

/// A forked process, pinned to `owner_core`, with one worker that sleeps, and a listener.
class echo_process {
 public:
  /// REQUIRES: this process has not used UCX yet, and runs one thread.
  explicit echo_process(const std::string& segment);
  echo_process(const echo_process&) = delete;
  echo_process& operator=(const echo_process&) = delete;
  ~echo_process();

  const socket_address& address() const noexcept { return address_; }
  /// Returns how much of its memory is resident.
  double resident_kilobytes() const;

 private:
  ::pid_t child_ = -1;
  socket_address address_;
};

}  // namespace ucx::benchmarks
