#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "ucx/export.hpp"
#include "ucx/memory_kind.hpp"
#include "ucx/to_string.hpp"

namespace ucx {

/// The use of a message's memory by a send.
enum class send_memory {
  /// Read until the request is done. The send copies only if copying is cheaper than keeping track.
  /// It copies 1 KiB and less with a header of 64 bytes and less, with `send_until::reusable`. It
  /// copies several spans that go to UCX as one: short messages, and runs of spans shorter than 16
  /// KiB each. On the way to UCX it copies everything over a connection that is not watched
  /// (`peer_failure::undetected`).
  borrowed,
  /// Copied by the call, all of it. The caller has the memory back when the call returns.
  copied,
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(send_memory value) noexcept;

/// The choice of a send when the peer has not taken earlier messages: see
/// `docs/reference/messages.md`.
enum class when_full {
  wait,  ///< Waits for room, in order, until its deadline.
  fail,  ///< Ends at once with `errc::would_block`; `message_handlers::on_room` reports room.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(when_full value) noexcept;

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
  when_full full = when_full::wait;
  send_until until = send_until::reusable;
  /// The kind of memory that the peer is told (`message_info::memory`). Empty: the kind that is
  /// found; of several spans the first one that is a device's. Reading the memory does not depend
  /// on it.
  std::optional<memory_kind> kind = {};
};

}  // namespace ucx
