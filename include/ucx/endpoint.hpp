#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/buffer.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/connection_request.hpp"
#include "ucx/endpoint_options.hpp"
#include "ucx/enumeration_text.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"
#include "ucx/message.hpp"
#include "ucx/message_handlers.hpp"
#include "ucx/message_info.hpp"
#include "ucx/message_parts.hpp"
#include "ucx/request.hpp"
#include "ucx/send_options.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/tag_match.hpp"
#include "ucx/worker.hpp"
#include "ucx/worker_address.hpp"

struct ucp_ep;  ///< UCX's own: `ucp_ep_h` is a pointer to it.

namespace ucx {

class buffer_pool;
class endpoint;

namespace detail {
class endpoint_core;
}

/// When a receive from the byte stream is done.
enum class stream_amount {
  some,  ///< When there is anything.
  all,   ///< When its memory is full.
};

/// Returns the name of the enumerator.
UCXIO_EXPORT std::string_view to_string(stream_amount value) noexcept;

/// A connection to one peer. Regions opened over it keep what they need of it alive.
/// Threads: as the worker's.
class UCXIO_EXPORT endpoint {
 public:
  /// Connects by worker address, without any IP address. Returns at once; operations wait for the
  /// connection, `wait_connected()` does so alone.
  /// Errors: unreachable (no transport in common), bad_address, too_many_files, closed (`parent`,
  /// or the connection that watches), invalid_argument (terms, or an option that is not for this
  /// way to connect), feature_disabled (terms).
  endpoint(const worker& parent, const worker_address& peer, endpoint_options options = {});
  endpoint(const worker& parent, const worker_address& peer, endpoint_options options,
           std::error_code& ec);

  /// Connects to a listener, and returns when the peer has answered in our protocol.
  /// Errors: connection_refused (also a peer that goes before UCX has connected the two, which UCX
  /// calls the same), connection_reset (it goes later, but before it has answered), unreachable,
  /// timed_out, version_mismatch, protocol_error, too_many_files, bad_address (empty, port 0,
  /// `local` of another family or not of this machine), not_supported (IPv6: see listener; terms),
  /// no_rdma, already_exists (terms), invalid_argument (terms, or an option that is not for this
  /// way to connect), feature_disabled (terms), closed (`parent`), would_deadlock inside a
  /// completion callback, and what else the peer gave as its reason to refuse.
  endpoint(const worker& parent, const socket_address& peer, endpoint_options options = {});
  endpoint(const worker& parent, const socket_address& peer, endpoint_options options,
           std::error_code& ec);

  /// Connects to a listener by the name of its host, or by a numeric address: looks the name up,
  /// and tries its addresses one after the other, all within one `connect_timeout`.
  /// Errors: as by socket address, those of the first address that said more than `unreachable`;
  /// host_not_found; timed_out also where the resolver does not answer; invalid_argument also for
  /// `connect_wait::none`.
  endpoint(const worker& parent, std::string_view host, std::uint16_t port,
           endpoint_options options = {});
  endpoint(const worker& parent, std::string_view host, std::uint16_t port,
           endpoint_options options, std::error_code& ec);

  /// Accepts what a listener's handler was given. Returns at once.
  /// Errors: closed (it was accepted or rejected before), invalid_argument (`parent` is not the
  /// listener's worker; terms; an option that is not for this way to connect; the request is as it
  /// was), feature_disabled (terms), connection_reset.
  endpoint(const worker& parent, connection_request&& request, endpoint_options options = {});
  endpoint(const worker& parent, connection_request&& request, endpoint_options options,
           std::error_code& ec);

  endpoint(endpoint&& other) noexcept;
  endpoint& operator=(endpoint&& other) noexcept;
  /// Lets go of the connection. When no handle, region or request holds it any more, it is closed
  /// with `close_mode::flush`, bounded by `close_timeout`.
  ~endpoint();

  /// Waits until the peer has answered. REQUIRES: a context with `feature::am`, else it is a no-op.
  /// Errors: connection_refused, unreachable, timed_out, version_mismatch, connection_reset,
  /// protocol_error, closed; would_deadlock inside a completion callback.
  void wait_connected();
  void wait_connected(std::error_code& ec);

  /// Returns no error while the connection is usable, `closed` after `close()`, else why it failed.
  std::error_code status() const noexcept;
  connection_state state() const noexcept;
  /// Returns what both sides can do: all zeros and empty until the peer has answered.
  /// Cost: UCX is asked about the lanes, and prints them.
  connection_report report() const;
  /// Returns what the peer told of itself (`connection_terms::info`); empty until it has answered.
  std::vector<std::byte> peer_info() const;
  /// Returns the number of the connection, as in its report; 0 without one.
  std::uint64_t id() const noexcept;

  /// Completes when everything started earlier over this connection, by any region, is visible at
  /// the peer. Errors: the connection's, timed_out, canceled, closed.
  request start_flush(const io_options& options = {});
  void flush(const io_options& options = {});
  void flush(std::error_code& ec, const io_options& options = {});

  /// What is started behind this takes effect at the peer behind everything that was started before
  /// it over this connection, by whatever way: reads see earlier writes, writes land over them.
  /// Returns at once, and completes nothing; what comes behind it may have to wait.
  /// Where both sides of a fence are messages, or RMA, they are ordered among themselves; messages
  /// behind RMA wait for its flush, and RMA behind messages goes by message.
  void fence();

  /// Gives up every operation over this connection that is in flight, as `request::cancel()` does,
  /// and waits for their ends, `limit` at most (not inside a handler). Returns how many are left.
  /// Writes that have ended, and are not known to be visible, count as failed: `flush` says so.
  std::size_t cancel_all(std::chrono::nanoseconds limit = std::chrono::nanoseconds::zero());

  /// Closes. Idempotent: a second call reports nothing. With `flush`, reports the first failure of
  /// what was outstanding, or `timed_out`, after which the connection is dropped all the same.
  /// Inside a completion callback, only `abort` is allowed (`would_deadlock`).
  void close(close_mode mode = close_mode::flush);
  void close(close_mode mode, std::error_code& ec);

  /// Closes without waiting: completes when nothing of the connection is left, within
  /// `close_timeout`, with what `close()` would have reported. Allowed inside completion callbacks.
  /// The handlers are not called any more.
  request start_close(close_mode mode = close_mode::flush);

  /// Has another connection to the same process watch this one, from now on (see
  /// `endpoint_options::watched_by`), beside those given before; only the last is kept open. One
  /// that the worker serves (`message::peer()`) keeps none open: the caller does.    Errors: closed
  /// (either); invalid_argument (`companion` is this one, or keeps it open, also through others).
  void watch_by(const endpoint& companion);
  void watch_by(const endpoint& companion, std::error_code& ec);

  /// Returns the peer's socket address where it is known, else an empty address.
  socket_address peer() const;
  /// Returns this side's socket address where the connection was made by one, else an empty one.
  socket_address local() const;

  /// Returns the transports in use as "transport/device", as UCX names them.
  std::vector<std::string> transports() const;

  /// Returns UCX's endpoint, for calls of its own API; null where there is none (any more). It is
  /// not the caller's to close, and is gone when the connection is: see `worker::native_handle()`.
  ucp_ep* native_handle() const noexcept;

  // Messages: docs/reference/messages.md says what is true when they complete, and in which order
  // they come. What starts a send may gather several spans, and of a tag or an active message take
  // a `buffer`, which comes back by itself. Calls that wait fail inside a handler
  // (`would_deadlock`), whatever else is said of them. All memory but that of headers may be a
  // device's (docs/how-to/gpu.md): who can not copy it ends with `io_error`, `no_memory` or
  // `not_supported`, alone.

  /// Sends a message with a tag, for a receive that wants it. Short ones go at once, longer ones
  /// when the peer has a place for them. Completes: see `send_until`.
  /// Lifetime: `bytes`, until the request is done (`send_memory::copied`: during the call); the
  /// list of spans during the call. A request that is dropped unfinished gives the send up. Errors:
  /// message_refused (the receiver gave up, or threw the message away), message_truncated (its
  /// memory was too small), would_block (`when_full::fail`), buffer_gone, feature_disabled, closed,
  /// timed_out, canceled, connection_reset, no_memory. After `would_block`, and where nothing was
  /// started, a buffer is still the caller's. The connection lives, but for its own errors. Cost:
  /// copies as `send_memory` says; a short one no round trip, else one; no allocation of ours for a
  /// short one after warm-up.
  request start_send(std::uint64_t tag, std::span<const std::byte> bytes,
                     const send_options& options = {});
  request start_send(std::uint64_t tag, std::span<const std::span<const std::byte>> bytes,
                     const send_options& options = {});
  request start_send(std::uint64_t tag, buffer&& bytes, const send_options& options = {});
  /// As `start_send`, and waits.
  void send(std::uint64_t tag, std::span<const std::byte> bytes, const send_options& options = {});
  void send(std::uint64_t tag, std::span<const std::byte> bytes, std::error_code& ec,
            const send_options& options = {});

  /// As `start_send`, of any number of parts (also none, also empty ones), which the peer receives
  /// as `message_parts`. It is one message: all of it comes, or nothing.    Cost: like several
  /// spans, one of which is the table of their lengths.
  request start_send_parts(std::uint64_t tag, std::span<const std::span<const std::byte>> parts,
                           const send_options& options = {});
  void send_parts(std::uint64_t tag, std::span<const std::span<const std::byte>> parts,
                  const send_options& options = {});
  void send_parts(std::uint64_t tag, std::span<const std::span<const std::byte>> parts,
                  std::error_code& ec, const send_options& options = {});

  /// Sends without a request: `message_handlers::on_sent` gets `key` and the outcome, once, also
  /// when the connection is closed meanwhile.    Lifetime: `bytes`, until then; the list of spans
  /// during the call. Nobody can give the send up but its deadline, `cancel_all()` and `close()`.
  /// With an error in `ec` nothing was started: would_block (`when_full::fail`), buffer_gone,
  /// feature_disabled, closed, the connection's; a buffer is still the caller's.
  void post_send(std::uint64_t tag, std::span<const std::byte> bytes, std::uint64_t key,
                 std::error_code& ec, const send_options& options = {});
  void post_send(std::uint64_t tag, std::span<const std::span<const std::byte>> bytes,
                 std::uint64_t key, std::error_code& ec, const send_options& options = {});
  void post_send(std::uint64_t tag, buffer&& bytes, std::uint64_t key, std::error_code& ec,
                 const send_options& options = {});
  /// As `post_send`, of what `start_send_parts` sends.
  void post_send_parts(std::uint64_t tag, std::span<const std::span<const std::byte>> parts,
                       std::uint64_t key, std::error_code& ec, const send_options& options = {});

  /// Receives the next message with such a tag of this peer's: as `worker::start_receive`, whose
  /// Completes, Lifetime, Errors and Cost are these.
  /// Errors also: connection_reset and the connection's other errors, closed.
  request start_receive(const tag_match& wanted, std::span<std::byte> into,
                        const io_options& options = {});
  request start_receive(const tag_match& wanted, std::span<const std::span<std::byte>> into,
                        const io_options& options = {});
  request start_receive(const tag_match& wanted, buffer& made, std::size_t most,
                        const io_options& options = {});
  request start_receive(const tag_match& wanted, buffer& made, buffer_pool& pool,
                        const io_options& options = {});
  request start_receive(const tag_match& wanted, message_parts& made, std::size_t most,
                        const io_options& options = {});
  /// As `start_receive`, and waits; returns what came.
  message_info receive(const tag_match& wanted, std::span<std::byte> into,
                       const io_options& options = {});
  message_info receive(const tag_match& wanted, std::span<std::byte> into, std::error_code& ec,
                       const io_options& options = {});

  /// As `worker::probe` and `worker::take`, of this peer's messages: nothing, too, where there is
  /// no connection or no `feature::am`.
  std::optional<message_info> probe(const tag_match& wanted) const;
  std::optional<message> take(const tag_match& wanted);

  /// Sends an active message: for the peer's `worker::on_message` of this number. `header` is
  /// copied by the call.    Completes, Lifetime, Cost: as `start_send`.    Errors: as `start_send`;
  /// header_too_long; invalid_argument (a header in a device's memory); no_such_handler, where the
  /// peer was asked first (a message that went at once is told by `message_handlers::on_refused`).
  request start_send_message(std::uint64_t number, std::span<const std::byte> header,
                             std::span<const std::byte> bytes, const send_options& options = {});
  request start_send_message(std::uint64_t number, std::span<const std::byte> header,
                             std::span<const std::span<const std::byte>> bytes,
                             const send_options& options = {});
  request start_send_message(std::uint64_t number, std::span<const std::byte> header,
                             buffer&& bytes, const send_options& options = {});
  /// As `post_send`.    Errors also: header_too_long, invalid_argument.
  void post_send_message(std::uint64_t number, std::span<const std::byte> header,
                         std::span<const std::byte> bytes, std::uint64_t key, std::error_code& ec,
                         const send_options& options = {});
  void post_send_message(std::uint64_t number, std::span<const std::byte> header,
                         std::span<const std::span<const std::byte>> bytes, std::uint64_t key,
                         std::error_code& ec, const send_options& options = {});
  void post_send_message(std::uint64_t number, std::span<const std::byte> header, buffer&& bytes,
                         std::uint64_t key, std::error_code& ec, const send_options& options = {});
  /// As `start_send_message`, and waits.
  void send_message(std::uint64_t number, std::span<const std::byte> header,
                    std::span<const std::byte> bytes, const send_options& options = {});
  void send_message(std::uint64_t number, std::span<const std::byte> header,
                    std::span<const std::byte> bytes, std::error_code& ec,
                    const send_options& options = {});
  /// Returns how long a header may be on this side: see also `connection_report::largest_header`.
  std::size_t longest_header() const noexcept;

  /// Sends bytes over the connection's byte stream: they arrive in order, and without boundaries.
  /// A send that fails may have sent its beginning.    Completes: when the bytes can be used again;
  /// nobody is told when the peer has them.    Lifetime: as `start_send`.    Errors: as
  /// `start_send`, but for those of a receiver.    Cost: like borrowed memory; no round trip while
  /// there is room.
  request start_stream_send(std::span<const std::byte> bytes, const send_options& options = {});
  request start_stream_send(std::span<const std::span<const std::byte>> bytes,
                            const send_options& options = {});
  void stream_send(std::span<const std::byte> bytes, const send_options& options = {});
  void stream_send(std::span<const std::byte> bytes, std::error_code& ec,
                   const send_options& options = {});
  /// Receives the next bytes of the peer's stream; `request::received().length` tells how many,
  /// also of a receive that failed, whose bytes are not there again for the next.    Completes: see
  /// `stream_amount`.    Lifetime: `into`, until the request is done.    Errors: timed_out,
  /// canceled, feature_disabled, closed, the connection's (when everything that came before its end
  /// was read). Cost: one copy, or two of bytes that came before their receive; no round trip.
  request start_stream_receive(std::span<std::byte> into, stream_amount amount,
                               const io_options& options = {});
  std::size_t stream_receive(std::span<std::byte> into, stream_amount amount,
                             const io_options& options = {});
  std::size_t stream_receive(std::span<std::byte> into, stream_amount amount, std::error_code& ec,
                             const io_options& options = {});

  /// Sets what is told of this connection's sends (none without `feature::am`), instead of what was
  /// set before, by whatever handle of it. Lifetime: see message_handlers.
  void set_message_handlers(message_handlers handlers);

 private:
  friend struct detail::core_access;
  endpoint() noexcept = default;
  std::shared_ptr<detail::endpoint_core> core_;
  bool borrowed_ = false;  // of a message, a manager: somebody else's handlers stay
};

}  // namespace ucx
