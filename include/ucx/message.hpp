#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"
#include "ucx/memory_resources.hpp"
#include "ucx/message_info.hpp"
#include "ucx/message_parts.hpp"
#include "ucx/request.hpp"

namespace ucx {

class buffer;
class buffer_pool;
class endpoint;

namespace detail {
struct arrived_message;
class worker_core;
}  // namespace detail

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
  bool is_here() const noexcept;
  /// Returns the payload if it is here, else nothing.
  /// Lifetime: the message's.
  std::span<const std::byte> data() const noexcept;

  /// Receives the payload into `into`, spread over several spans, or into memory that is allocated
  /// for it. Once for each message, unless the payload is here.
  /// Completes: when the payload is in place.
  /// Lifetime: `into`, and `made`, until the request is done. The message may die before.
  /// Errors: message_truncated (the sender of a payload that is not here is told, too),
  /// message_withdrawn, connection_reset, closed_by_peer, closed, no_memory, timed_out, canceled;
  /// invalid_argument for a second time, and for an empty message.
  /// Cost: a round trip, or one copy where the payload is here.
  request start_receive(std::span<std::byte> into, const io_options& options = {});
  request start_receive(std::span<const std::span<std::byte>> into, const io_options& options = {});
  request start_receive(buffer& made, std::size_t most, const io_options& options = {});
  /// Like `start_receive` into `into`, but into a buffer of `pool`: see `worker::start_receive`. If
  /// no buffer came back in time, the program keeps the message.
  request start_receive(buffer& made, buffer_pool& pool, const io_options& options = {});
  request start_receive(message_parts& made, std::size_t most, const io_options& options = {});
  /// Like `start_receive` into `into`, but into memory of the kind that the sender's memory has
  /// (`info().memory`). The call allocates it from the resource of `from` for that kind, for a
  /// payload of up to `most` bytes. `made` owns it from then on, whatever the outcome of the
  /// receive. A resource for a kind that neither the processor nor the CUDA driver copies to
  /// (`rocm`, `other`) counts as missing.
  /// Lifetime: the resource, until `made` has died; `from`, during the call.
  /// Errors: also no_memory (the resource's std::bad_alloc), not_supported
  /// (`missing_resource::strict`). With either nothing was started, and the program keeps the
  /// message.
  request start_receive(buffer& made, const memory_resources& from, std::size_t most,
                        missing_resource missing = missing_resource::fallback,
                        const io_options& options = {});

  /// Like `start_receive`, and waits. Not inside a handler (`would_deadlock`).
  void receive(std::span<std::byte> into, const io_options& options = {},
               std::error_code& ec = throws);

  /// Returns a handle of the connection that the message came over, to answer by. Empty when the
  /// connection is gone.
  endpoint peer() const;

#if UCXIO_OLD_NAMES
  [[deprecated("the error code comes last")]] void receive(std::span<std::byte> into,
                                                           std::error_code& ec,
                                                           const io_options& options = {}) {
    receive(into, options, ec);
  }
#endif

 private:
  friend struct detail::core_access;
  message(std::shared_ptr<detail::worker_core> worker, detail::arrived_message& arrived) noexcept
      : worker_(std::move(worker)), arrived_(&arrived) {}

  std::shared_ptr<detail::worker_core> worker_;
  detail::arrived_message* arrived_ = nullptr;  // the worker's, until it is discarded
};

}  // namespace ucx
