#pragma once

#include <cstdint>
#include <system_error>

#include "ucx/completion_handler.hpp"
#include "ucx/message_info.hpp"

namespace ucx {

/// What a program wants to be told of the messages that it sends over one connection. Each handler
/// may be called many times, one at a time with all others of the worker, on the thread that drives
/// progress; like every handler it must not wait.
/// Lifetime: `endpoint::set_message_handlers` may replace them at any time, also inside one of
/// them, and any handle of the connection may. What is told already, and the keys that were posted
/// before, still go to the ones before, so these, and what they refer to, live until those posts
/// have ended: also behind `close()` and the end of the `endpoint`, which take the handlers away
/// for everything else.
struct message_handlers {
  /// A send by `endpoint::post_...` has ended: with the key that it was given, and how. Once each.
  move_only_handler<std::uint64_t, std::error_code> on_sent = {};
  /// There is room again, for a quarter of what the peer grants, after a send has ended with
  /// `would_block`. Once for all that have ended so meanwhile.
  move_only_handler<> on_room = {};
  /// The peer has no handler for an active message that was sent, whole, earlier. Where nobody set
  /// this, the log has a line at `warning`: one for a number, of the first 16 of a connection.
  move_only_handler<message_info> on_refused = {};
};

}  // namespace ucx
