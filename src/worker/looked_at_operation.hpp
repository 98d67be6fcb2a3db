// An operation whose end shows when it looks.
#pragma once

#include "worker/operation.hpp"

namespace ucx::detail {

/// No callback of UCX ends it: it looks at what it waits for, at the clock's alarms.
class looked_at_operation : public operation {
 public:
  /// Ends it, where that is due. Under the lock. A handler that waits for it turns UCX alone, where
  /// no alarm rings.
  virtual void look() noexcept = 0;
  /// Its request goes, and it is not done: the connection is its own to keep. Under the lock.
  virtual void left() noexcept = 0;
};

}  // namespace ucx::detail
