// UCX's description of a worker.
#pragma once

#include <cstddef>
#include <string>

#include "ucx/export.hpp"

namespace ucx {

/// UCX's description of a worker.
struct worker_attributes {
  std::string name = {};
  /// The threads that may call UCX: "single", "serialized" (any, one at a time) or "multi".
  /// `worker_options` says which threads may use the worker.
  std::string thread_mode = {};
  union {
    /// The longest header of UCX's active messages; 0 without `feature::am`. A program has less:
    /// `endpoint::max_header_size()`.
    std::size_t max_header_size = 0;
#if UCXIO_OLD_NAMES
    [[deprecated("max_header_size")]] std::size_t largest_header;
#endif
  };
  std::size_t address_size = 0;  ///< The size of the worker's address, in bytes.
};

}  // namespace ucx
