#pragma once

#include <cstdint>

#include "ucx/memory_kind.hpp"

namespace ucx {

/// The facts about a message without its bytes.
struct message_info {
  std::uint64_t tag = 0;  ///< The sender's tag; the number of an active message.
  std::uint64_t length =
      0;  ///< The payload's length as it was sent, even if it does not fit the receiver's memory.
  /// The kind of the sender's memory, as it was found, or as `send_options::kind` says.
  memory_kind memory = memory_kind::host;

  friend bool operator==(const message_info&, const message_info&) = default;
};

}  // namespace ucx
