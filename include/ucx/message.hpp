#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

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

/// A message of a peer's in the program's hands: its header is here, and its payload is too, or is
/// asked for by `start_receive`, to where the program says. It takes room of its sender's window
/// until it dies; a message that dies unreceived is refused to a sender who still waits.
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
  /// Returns the user's header.    Lifetime: the message's.
  std::span<const std::byte> header() const noexcept;

  /// Returns whether the payload is here, so that `data()` is all of it. It is where the sender did
  /// not wait to be asked: `docs/reference/messages.md`.
  bool is_here() const noexcept;
  /// Returns the payload where it is here, else nothing.    Lifetime: the message's.
  std::span<const std::byte> data() const noexcept;

  /// Receives the payload into `into`, spread over several spans, or into memory that is allocated
  /// for it. Once a message, but where the payload is here. Completes: when the payload is in
  /// place. Lifetime: `into`, and `made`, until the request is done; the message may die before.
  /// Errors:
  /// message_truncated (of a payload that is not here its sender is told, too), message_withdrawn,
  /// connection_reset, closed_by_peer, closed, no_memory, timed_out, canceled; invalid_argument for
  /// a second time, and of an empty message.    Cost: a round trip, or one copy where it is here.
  request start_receive(std::span<std::byte> into, const io_options& options = {});
  request start_receive(std::span<const std::span<std::byte>> into, const io_options& options = {});
  request start_receive(buffer& made, std::size_t most, const io_options& options = {});
  /// As above, into a buffer of `pool`: see `worker::start_receive`. The message stays the
  /// program's where none came back in time.
  request start_receive(buffer& made, buffer_pool& pool, const io_options& options = {});
  request start_receive(message_parts& made, std::size_t most, const io_options& options = {});
  /// As above, into memory of the kind that the sender's is (`info().memory`), which this call
  /// takes from `from` for a payload of up to `most` bytes: `made` owns it from then on, whatever
  /// becomes of the receive. One that stands for a kind which neither the processor nor the CUDA
  /// driver copies to (`rocm`, `other`) counts as missing. Lifetime: the resource, until `made` has
  /// died; `from`, during the call. Errors also: no_memory (the resource's std::bad_alloc),
  /// not_supported (`missing_resource::strict`); with either nothing was started, and the message
  /// stays the program's, to receive it otherwise or let go.
  request start_receive(buffer& made, const memory_resources& from, std::size_t most,
                        missing_resource missing = missing_resource::fallback,
                        const io_options& options = {});

  /// As `start_receive`, and waits. Not inside a handler (`would_deadlock`).
  void receive(std::span<std::byte> into, const io_options& options = {});
  void receive(std::span<std::byte> into, std::error_code& ec, const io_options& options = {});

  /// Returns a connection to the sender, to answer by: the same one. Empty when it is gone.
  endpoint peer() const;

 private:
  friend struct detail::core_access;
  message(std::shared_ptr<detail::worker_core> worker, detail::arrived_message& arrived) noexcept
      : worker_(std::move(worker)), arrived_(&arrived) {}

  std::shared_ptr<detail::worker_core> worker_;
  detail::arrived_message* arrived_ = nullptr;  // the worker's, until it is discarded
};

}  // namespace ucx
