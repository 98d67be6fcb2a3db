// Sending a message: its bytes, its options, its handlers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "ucx/buffer.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/old_option.hpp"
#include "ucx/request.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"

namespace ucx {

namespace detail {
class send_source;
}

/// The address of an active message: a handler of the peer, and a header for it. The peer's
/// `worker::on_message` of this number gets the message.
/// Lifetime: `header`, during the call that sends. The call copies it.
struct active_message {
  std::uint64_t number = 0;
  /// At most `endpoint::max_header_size()` bytes, in memory of the host.
  std::span<const std::byte> header = {};
};

/// The address of a message at the peer. A number is a tag, for a receive that wants it. An
/// `active_message` is for a handler. It is a parameter of calls that send, made at the call.
///
///     peer.send(7, bytes);
///     peer.send(ucx::active_message{3, header}, bytes);
///
/// Lifetime: it refers to the header.
class message_destination {
 public:
  constexpr message_destination(std::uint64_t tag) noexcept  // NOLINT(google-explicit-constructor)
      : number_(tag) {}
  constexpr message_destination(
      const active_message& to) noexcept  // NOLINT(google-explicit-constructor)
      : number_(to.number), header_(to.header), is_active_(true) {}

 private:
  friend class detail::send_source;

  std::uint64_t number_;
  std::span<const std::byte> header_ = {};
  bool is_active_ = false;
};

/// The bytes of a send, in one of four forms. It is a parameter of calls that send, made at the
/// call.
///
///     peer.send(7, bytes);                            // one run of bytes
///     peer.send(7, gathered);                         // several, which arrive as one
///     peer.send(7, ucx::payload::parts(gathered));    // several, which the receiver tells apart
///     peer.send(7, std::move(filled));                // a buffer, which the send takes over
///     peer.send(7, {});                               // no bytes
///
/// Any form goes to a tag and to a handler, by each call that sends a message. The byte stream
/// takes the first two forms. It has no boundaries, and refuses the others with
/// `invalid_argument`.
/// Lifetime: it owns nothing. The call that sends reads lists of spans, and empties the buffer. The
/// bytes of spans are used until the send is done.
/// Cost: it allocates nothing, and copies nothing.
class payload {
 public:
  /// Has no bytes.
  payload() noexcept = default;
  /// Has one run of bytes.
  template <detail::span_of_bytes<const std::byte> Bytes>
  payload(Bytes&& bytes)  // NOLINT(google-explicit-constructor): they are one
      : form_(std::in_place_type<run>, std::forward<Bytes>(bytes)) {}
  /// Has several runs of bytes, which the receiver gets as one.
  template <detail::spans_of_bytes<const std::byte> Spans>
  payload(Spans&& gathered)  // NOLINT(google-explicit-constructor): they are one
      : form_(std::in_place_type<run_list>, std::forward<Spans>(gathered)) {}
  /// Has the bytes of `taken` that are in use. The send takes the buffer over when it starts, and
  /// gives it back to its pool, or frees it, when it is done. Where nothing starts, the buffer is
  /// still the caller's: after `would_block`, `closed` and every other error of the call itself. An
  /// empty one is `empty_buffer`.
  payload(buffer&& taken) noexcept  // NOLINT(google-explicit-constructor): it is one
      : form_(&taken) {}

  /// Has any number of parts, also none, also empty ones. The peer receives them as
  /// `message_parts`: as many, each with its length. For other receives, and in
  /// `message::data()`, the message is a table of the lengths with the bytes behind it. The table
  /// has eight bytes for each part, and eight for all.
  /// Cost: that of several runs, one of which is the table.
  static payload parts(std::span<const std::span<const std::byte>> each) noexcept {
    return payload(std::in_place_type<part_list>, each);
  }

 private:
  friend class detail::send_source;

  using run = std::span<const std::byte>;
  using run_list = std::span<const run>;
  struct part_list {
    run_list each;
  };
  payload(std::in_place_type_t<part_list>, run_list each) noexcept : form_(part_list{each}) {}

  std::variant<run, run_list, part_list, buffer*> form_;
};

#if UCXIO_OLD_NAMES
using message_id [[deprecated("message_destination")]] = message_destination;
#endif

/// The use of a message's memory by a send.
enum class send_memory {
  /// Read until the request is done. The send copies only if copying is cheaper than keeping track.
  /// It copies 1 KiB and less with a header of 64 bytes and less, with `send_until::reusable`. It
  /// copies several spans that go to UCX as one: short messages, and runs of spans shorter than 16
  /// KiB each. On the way to UCX it copies everything over a connection that is not watched
  /// (`error_handling_mode::none`).
  borrowed,
  /// Copied by the call, all of it. The caller has the memory back when the call returns.
  copied,
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(send_memory value) noexcept;

/// The choice of a send when the peer has not taken earlier messages: see
/// `docs/reference/messages.md`.
enum class backpressure {
  wait,  ///< Waits for room, in order, until its deadline.
  fail,  ///< Ends at once with `errc::would_block`; `message_handlers::on_writable` reports room.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(backpressure value) noexcept;

/// The moment at which a send is done.
enum class send_until {
  reusable,  ///< The memory can be used again. Nothing is known about the peer.
  matched,   ///< A receive or a handler of the peer has the message, or the peer refused it.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(send_until value) noexcept;

/// The options of one send.
struct send_options {
  /// How long the send may take. Zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  send_memory memory = send_memory::borrowed;
  /// For one version: `backpressure`.
  detail::old_option<ucx::backpressure> full = {};
  ucx::backpressure backpressure = full.value_or(ucx::backpressure::wait);
  send_until until = send_until::reusable;
  /// The kind of memory that the peer is told (`message_info::memory`). Empty: the kind that is
  /// found; of several spans the first one that is a device's. Reading the memory does not depend
  /// on it.
  std::optional<memory_kind> kind = {};
};

#if UCXIO_OLD_NAMES
using when_full [[deprecated("backpressure")]] = backpressure;
#endif

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
