// Follows a connection: its listener, or code that connects for another part of the library.
#pragma once

namespace ucx::detail {

class endpoint_core;

/// Called under the worker's lock, never inside UCX's callbacks.
class connection_observer {
 public:
  virtual ~connection_observer() = default;
  /// The peer has answered.
  virtual void established(endpoint_core& connection) = 0;
  /// It failed, before or after that, or was closed on this side: `failure()` says why.
  virtual void ended(endpoint_core& connection, bool was_established) = 0;
};

}  // namespace ucx::detail
