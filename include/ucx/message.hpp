#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/receive_target.hpp"
#include "ucx/request.hpp"
#include "ucx/version.hpp"

namespace ucx {

class endpoint;

namespace detail {
struct arrived_message;
class worker_core;
}  // namespace detail

/// The number of an active message that belongs to a library of the program. Several libraries can
/// share a worker so, without dividing the numbers. It converts to the number that travels. The
/// upper half is a hash of the owner's name, and never 0. The lower half is the library's number
/// (`docs/reference/wire-format.md`). An empty name makes a plain number.
///
///     worker.on_message({"tables", 3}, handler);
///     peer.send(ucx::active_message{ucx::message_name("tables", 3)}, bytes);
///
/// Lifetime: the characters of `owner`, as long as this object.
class UCXIO_EXPORT message_name {
 public:
  message_name(std::string_view owner, std::uint32_t number) noexcept;
  operator std::uint64_t() const noexcept {  // NOLINT(google-explicit-constructor): it is one
    return number_;
  }
  std::string_view owner() const noexcept { return owner_; }

 private:
  std::string_view owner_;
  std::uint64_t number_;
};

/// A message of a peer that the program holds. Its header is here. Its payload is here, too, or
/// `start_receive` asks for it and puts it where the program says. The message takes room of the
/// sender's window until it dies. A message that dies before it was received is refused to a sender
/// that still waits.
/// Threads: as the worker's.
class UCXIO_EXPORT message {
 public:
  /// Makes an empty message.
  message() noexcept = default;
  message(message&& other) noexcept
      : worker_(std::move(other.worker_)), arrived_(std::exchange(other.arrived_, nullptr)) {}
  message& operator=(message&& other) noexcept;
  ~message();

  explicit operator bool() const noexcept { return arrived_ != nullptr; }

  /// Returns the sender's tag, or the number of an active message.
  std::uint64_t tag() const noexcept { return info().tag; }
  /// Returns the length of the payload.
  std::uint64_t length() const noexcept { return info().length; }
  message_info info() const noexcept;
  /// Returns the user's header.
  /// Lifetime: the message's.
  std::span<const std::byte> header() const noexcept;

  /// Returns whether the payload is here, and `data()` is all of it. That is so where the sender
  /// did not have to be asked for it: `docs/reference/messages.md`.
  bool has_payload() const noexcept;
  /// Returns the payload if it is here, else nothing.
  /// Lifetime: the message's.
  std::span<const std::byte> data() const noexcept;

  /// Receives the payload into `into`, in any form that `receive_target` has. Once for each
  /// message, unless the payload is here.
  /// Completes: when the payload is in place.
  /// Lifetime: see `receive_target`. The message may die before.
  /// Errors: message_truncated (the sender of a payload that is not here is told, too),
  /// message_withdrawn, connection_reset, closed_by_peer, closed, timed_out, canceled, and those of
  /// the form of `into`; invalid_argument for a second time, and for an empty message.
  /// Cost: a round trip, or one copy where the payload is here.
  request start_receive(const receive_target& into, const io_options& options = {});
  /// Like `start_receive`, and waits. Not inside a handler (`would_deadlock`).
  void receive(const receive_target& into, const io_options& options = {},
               std::error_code& ec = throws);

  /// Returns a handle of the connection that the message came over, to answer by. Empty when the
  /// connection is gone.
  endpoint peer() const;

#if UCXIO_OLD_NAMES
#include "ucx/old_names/message.ipp"
#endif

 private:
  friend struct detail::core_access;
  message(std::shared_ptr<detail::worker_core> worker, detail::arrived_message& arrived) noexcept
      : worker_(std::move(worker)), arrived_(&arrived) {}

  std::shared_ptr<detail::worker_core> worker_;
  detail::arrived_message* arrived_ = nullptr;  // the worker's, until it is discarded
};

}  // namespace ucx
