// The names of the messages in which calls travel, for tests that send such messages themselves.
#pragma once

#include "ucx/message.hpp"

namespace ucx::calls {

inline const message_name to_callee("ucxio calls", 1);
inline const message_name to_caller("ucxio calls", 2);

}  // namespace ucx::calls
