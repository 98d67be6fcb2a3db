// Who has a key of UCX's of a connection.
#pragma once

namespace ucx::detail {

/// Keys go before their connection does, and at a moment that UCX allows: the connection says when.
class key_holder {
 public:
  /// Destroys the key; again and again is nothing. Under the worker's lock.
  virtual void drop_key() noexcept = 0;

 protected:
  ~key_holder() = default;
};

}  // namespace ucx::detail
