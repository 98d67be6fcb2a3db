// A descriptor beside the bytes of a message on a Unix socket (SCM_RIGHTS).
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>

#include "base/owned_descriptor.hpp"

namespace ucx::detail {

/// Room for one. REQUIRES: it outlives the call that sends or receives the message.
class passed_descriptor {
 public:
  /// Has the message carry the descriptor.
  void attach(::msghdr& message, int descriptor) noexcept;
  /// Has the system put one that comes here. It drops those that there is no room for.
  void expect(::msghdr& message) noexcept;

  enum class arrival { none, came, too_many };
  /// Takes what has come; of too many nothing.
  static arrival take(::msghdr& message, owned_descriptor& into) noexcept;

 private:
  // Less than CMSG_SPACE, whose padding the system would fill with a second one.
  alignas(::cmsghdr) std::array<std::byte, CMSG_LEN(sizeof(int))> bytes_ = {};
};

/// Returns whether it is a file in memory that can neither shrink nor grow. Nothing of a hostile
/// file system is asked.
bool is_sealed_memory(int file) noexcept;

/// Closes a file of a hostile peer, in another thread: its file system may delay that for ever.
void close_elsewhere(owned_descriptor hostile) noexcept;

}  // namespace ucx::detail
