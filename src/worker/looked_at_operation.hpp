// An operation whose end shows when it looks.
#pragma once

namespace ucx::detail {

/// Besides an `operation`, where no callback of UCX ends that. It looks at what it waits for when
/// the clock's alarms ring, or when it is told to.
class looked_at_operation {
 public:
  looked_at_operation() noexcept = default;
  looked_at_operation(const looked_at_operation&) = delete;
  looked_at_operation& operator=(const looked_at_operation&) = delete;

  /// Ends it, where that is due. Under the lock. A handler that waits for it turns UCX alone, where
  /// no alarm rings.
  virtual void look() noexcept = 0;
  /// Its request goes, and it is not done: the connection is its own to keep. Under the lock.
  virtual void left() noexcept = 0;
  /// Returns whether it ends with its connection. Under the lock.
  virtual bool ends_with_connection() const noexcept { return true; }

 protected:
  ~looked_at_operation() = default;
};

}  // namespace ucx::detail
