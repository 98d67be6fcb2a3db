#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/context.hpp"
#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"
#include "ucx/socket_address.hpp"

namespace ucx {

/// Where a connection stands.
enum class connection_state {
  connecting,  ///< The peer has not answered yet; operations wait.
  active,      ///< Both sides agreed; operations go out.
  closing,     ///< `close()` was called here, and takes its time.
  failed,      ///< Lost, refused, or closed by the peer.
  closed,      ///< Closed on this side, or there is no connection.
};

/// Returns the state's name.
UCXIO_EXPORT const char* to_string(connection_state state) noexcept;

/// What a connection can do, as both sides told each other when it was made.
struct connection_report {
  /// Counts the connections of the worker: the same number in every report of one connection.
  std::uint64_t id = 0;
  socket_address peer = {};                  ///< Empty for a connection by worker address.
  socket_address local = {};                 ///< Likewise.
  std::string peer_name = {};                ///< `worker_options::name` of the peer.
  std::vector<std::byte> peer_info = {};     ///< `connection_terms::info` of the peer.
  feature features = feature::none;          ///< What both contexts were made for.
  std::vector<std::string> transports = {};  ///< "transport/device" of each lane.
  std::size_t segment = 0;                   ///< Bytes that the transport carries in one piece.
  /// The longest message, header and all, that goes at once while none of the peer's room is in
  /// use; longer ones are announced first (docs/reference/messages.md, "Complete").
  std::size_t largest_eager = 0;
  std::size_t largest_header = 0;  ///< Of an active message, as both sides can send it.
  bool zero_copy = false;  ///< Hardware sends from where the bytes lie: UCX does not copy them.
  /// Hardware, or this process itself in shareable memory, reads and writes: no CPU of the peer's.
  bool rma_is_real = false;
  bool watched = false;  ///< It is noticed at once when the peer's process ends.
};

/// Why a connection did not come to be.
struct connection_refusal {
  std::uint64_t id = 0;
  socket_address peer = {};
  /// What the peer gave as its reason, or connection_refused, unreachable, timed_out, ...
  std::error_code reason = {};
  std::string words = {};  ///< The peer's own text, or UCX's.
};

/// A port is lost by which peers come to a listener, or by which their data come.
struct listener_failure {
  socket_address port = {};
  std::error_code reason = {};  ///< too_many_files
  std::string words = {};
};

/// How a connection that was active came to its end.
struct connection_end {
  std::uint64_t id = 0;
  socket_address peer = {};
  /// `closed_by_peer` where it said goodbye; connection_reset, protocol_error, ... otherwise.
  std::error_code reason = {};
  std::string words = {};
  /// The keys of the posts that had not ended by then, in the order in which they were made: what
  /// was not sent, or not surely. `message_handlers::on_sent` is told of each of them, too.
  std::vector<std::uint64_t> unsent = {};
};

}  // namespace ucx
