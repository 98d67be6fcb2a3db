// A GPU's memory by UCX itself, where it knows of CUDA: the measure for what ours moves directly.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "raw_ucx.hpp"

namespace ucx::benchmarks {

/// Two processes of raw UCX with the transports that it takes by itself: a forked one, pinned to
/// `owner_core`, that exposes memory of the first device with the pattern in it; and this one,
/// which gets and puts.
class raw_device {
 public:
  /// REQUIRES: this process has used neither UCX nor CUDA, and runs one thread.
  explicit raw_device(std::size_t size);
  raw_device(const raw_device&) = delete;
  raw_device& operator=(const raw_device&) = delete;
  ~raw_device();

  /// Why UCX has no part in a device's memory here; empty: it has.
  const std::string& why_not() const noexcept { return why_not_; }

  /// REQUIRES: `why_not()` is empty; the calling thread has a context of the device.
  /// Errors: std::runtime_error.
  void connect();
  /// Gets or puts all of `memory`, the host's or a device's, at `offset`, and waits for it: for
  /// what was put, until it is there. REQUIRES: connected. Errors: std::runtime_error, and for what
  /// takes more than ten seconds.
  void get(std::size_t offset, std::span<std::byte> memory);
  void put(std::size_t offset, std::span<const std::byte> memory);

 private:
  struct connection;

  ::pid_t child_ = -1;
  int quit_ = -1;
  std::string why_not_;
  raw_target target_;
  std::unique_ptr<connection> connection_;
};

}  // namespace ucx::benchmarks
