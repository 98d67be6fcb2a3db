// An owner of a key of UCX's of a connection.
#pragma once

namespace ucx::detail {

/// Keys go before their connection does, and at a moment that UCX allows: the connection says when.
class remote_key_owner {
 public:
  /// Destroys the key; again and again is nothing. Under the worker's lock.
  virtual void drop_key() noexcept = 0;

 protected:
  ~remote_key_owner() = default;
};

}  // namespace ucx::detail
