// A worker of UCX's, as UCX describes it.
#pragma once

#include <cstddef>
#include <string>

namespace ucx {

/// What UCX says of a worker.
struct worker_attributes {
  std::string name = {};
  /// From which threads UCX may be called: "single", "serialized" (any, one at a time) or "multi".
  /// Which threads may use the worker is for `worker_options` to say.
  std::string thread_mode = {};
  /// Of an active message of UCX's; 0 without `feature::am`. Ours has less room for a program's:
  /// `endpoint::longest_header()`.
  std::size_t largest_header = 0;
  std::size_t address_size = 0;  ///< Of the worker's address, in bytes.
};

}  // namespace ucx
