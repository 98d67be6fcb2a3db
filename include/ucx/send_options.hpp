#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"
#include "ucx/memory_kind.hpp"

namespace ucx {

/// What the memory of a message is to a send.
enum class send_memory {
  /// Read until the request is done. Copied is only what is cheaper to copy than to keep track of:
  /// 1 KiB and less with a header of 64 bytes and less, where nobody waits for its fate; what goes
  /// to UCX as one from several spans (short messages, and runs of spans that are shorter than 16
  /// KiB each); and, on its way to UCX, everything over a connection that is not watched
  /// (`peer_failure::undetected`).
  borrowed,
  /// Copied by the call, all of it: it is the caller's again when that returns.
  copied,
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(send_memory value) noexcept;

/// What a send does when the peer has not taken what was sent earlier: see
/// `docs/reference/messages.md`.
enum class when_full {
  wait,  ///< Waits for room, in order, until its deadline.
  fail,  ///< Ends at once with `errc::would_block`; `message_handlers::on_room` tells of room.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(when_full value) noexcept;

/// When a send is done.
enum class send_until {
  reusable,  ///< The memory can be used again: nothing is known about the peer.
  matched,   ///< A receive or a handler of the peer's has the message, or the peer refused it.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(send_until value) noexcept;

/// How one message is sent.
struct send_options {
  /// How long it may take; zero means the worker's `operation_timeout`.
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::zero();
  send_memory memory = send_memory::borrowed;
  when_full full = when_full::wait;
  send_until until = send_until::reusable;
  /// What the peer is told that the memory is (`message_info::memory`); nothing: what it is found
  /// to be, of several spans the first that is a device's. How it is read does not depend on it.
  std::optional<memory_kind> kind = {};
};

}  // namespace ucx
