#pragma once

#include <chrono>

namespace ucx {

/// How one operation is done.
struct io_options {
  /// How long the operation may take; zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
};

}  // namespace ucx
