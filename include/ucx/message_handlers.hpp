#pragma once

#include <cstdint>
#include <system_error>

#include "ucx/completion_handler.hpp"
#include "ucx/export.hpp"
#include "ucx/message_info.hpp"
#include "ucx/old_option.hpp"

namespace ucx {

/// The handlers for the messages that a program sends over one connection. Each may be called many
/// times, on the thread that drives progress. All handlers of the worker are called one at a time.
/// Like every handler, it must not wait.
/// Lifetime: `endpoint::set_message_handlers` may replace them at any time, even inside a handler,
/// by any handle of the connection. The earlier handlers still get the events that are being told,
/// and the keys that were posted before. So they, and everything that they refer to, live until
/// those posts have ended. `close()` and the end of the `endpoint` take the handlers away for all
/// other events.
struct message_handlers {
  /// A send by `endpoint::post_...` has ended. Gets its key and its outcome, once for each send.
  move_only_handler<std::uint64_t, std::error_code> on_sent = {};
  /// For one version: `on_writable`.
  detail::old_option<move_only_handler<>> on_room = {};
  /// After a send has ended with `would_block`, there is room again for a quarter of the peer's
  /// grant. Called once for all sends that have ended so.
  move_only_handler<> on_writable = on_room.value_or({});
  /// The peer has no handler for an active message that was sent earlier, as a whole. Without this
  /// handler the log has a line at `warning`: one for each number, for the first 16 of a
  /// connection.
  move_only_handler<message_info> on_refused = {};
};

}  // namespace ucx
