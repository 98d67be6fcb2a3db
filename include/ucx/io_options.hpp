#pragma once

#include <chrono>

namespace ucx {

/// How one operation is done.
struct io_options {
  /// How long the operation may take; zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  /// Of reads (writes are not checked): the owner sends a checksum (XXH3-128) with each piece of at
  /// most a segment, and what does not match is asked for again, twice; then the read fails with
  /// `damaged_on_the_way`, and its text says which bytes. Goes by message, whatever the region's
  /// way. Memory that is written while it is read may not match. Errors: not_supported (the owner
  /// is of a version that sends none, or the memory is a device's), feature_disabled (the context
  /// was made without feature::am).
  bool verify = false;
};

}  // namespace ucx
