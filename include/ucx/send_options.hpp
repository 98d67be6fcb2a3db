#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "ucx/export.hpp"
#include "ucx/memory_kind.hpp"
#include "ucx/old_option.hpp"
#include "ucx/to_string.hpp"

namespace ucx {

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

}  // namespace ucx
