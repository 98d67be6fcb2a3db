#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ucx/access_rules.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/endpoint_options.hpp"
#include "ucx/error.hpp"
#include "ucx/message.hpp"
#include "ucx/payload.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/receive_target.hpp"
#include "ucx/request.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/to_string.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

struct ucp_ep;  ///< UCX's type: `ucp_ep_h` is a pointer to it.

namespace ucx {

class connection_request;  // in listener.hpp
class endpoint;

namespace detail {
class endpoint_core;
}

/// The moment at which a receive from the byte stream is done.
enum class stream_amount {
  some,  ///< At least one byte has come.
  all,   ///< Its memory is full.
};

template <>
UCXIO_EXPORT std::string_view detail::enum_name(stream_amount value) noexcept;

/// A connection to one peer. Regions opened over it keep what they need of it alive.
/// Threads: as the worker's.
class UCXIO_EXPORT endpoint {
 public:
  /// Connects to `peer`.
  ///
  /// By worker address it needs no IP address, and returns at once. Operations wait for the
  /// connection. `wait_connected()` waits without an operation.
  /// Errors: unreachable (no transport in common), bad_address, too_many_files, no_memory, closed
  /// (`parent`,
  /// or the connection that watches), invalid_argument (terms, or an option that is not for this
  /// way to connect), feature_disabled (terms).
  ///
  /// By socket address it connects to a listener, and returns when the peer has answered in ucxio's
  /// protocol.
  /// Errors: connection_refused (also a peer that goes before UCX has connected the two, which UCX
  /// reports alike), connection_reset (it goes later, but before it has answered), unreachable,
  /// timed_out, version_mismatch, protocol_error, too_many_files, no_memory, bad_address (empty,
  /// port 0, `local` of another family or not of this machine), address_in_use and
  /// permission_denied (`local`), not_supported (IPv6: see listener; terms),
  /// no_rdma, already_exists (terms), invalid_argument (terms, or an option that is not for this
  /// way to connect), feature_disabled (terms), closed (`parent`), would_deadlock inside a
  /// completion callback, and any other reason of the peer to refuse.
  ///
  /// By a host and a port it looks the host up, and tries its addresses one after the other, all
  /// within one `connect_timeout`.
  /// Errors: those by socket address, of the first address that said more than `unreachable`,
  /// `not_supported` and `bad_address`, else of the last address; host_not_found; timed_out also
  /// where the resolver does not answer; invalid_argument also for `connect_wait::none`.
  endpoint(const worker& parent, const peer_address& peer, endpoint_options options = {},
           std::error_code& ec = throws);

  /// Accepts a request that a listener's handler got. Returns at once.
  /// Errors: closed (it was accepted or rejected before), invalid_argument (`parent` is not the
  /// listener's worker; terms; an option that is not for this way to connect; the request stays as
  /// it was), feature_disabled (terms), connection_reset.
  endpoint(const worker& parent, connection_request&& request, endpoint_options options = {},
           std::error_code& ec = throws);

  endpoint(endpoint&& other) noexcept;
  endpoint& operator=(endpoint&& other) noexcept;
  /// Lets go of the connection. When no handle, region or request holds it any more, it is closed
  /// with `close_mode::flush`, within `close_timeout`.
  ~endpoint();

  /// Waits until the peer has answered. Returns at once on a context without `feature::am`.
  /// Errors: connection_refused, unreachable, timed_out, version_mismatch, connection_reset,
  /// protocol_error, closed; would_deadlock inside a completion callback.
  void wait_connected(std::error_code& ec = throws);

  /// Returns no error while the connection is usable, and `closed` after `close()`. Otherwise
  /// returns why the connection failed.
  std::error_code status() const noexcept;
  connection_state state() const noexcept;
  /// Returns the abilities of both sides: zeros and empty values until the peer has answered.
  /// Cost: UCX is asked about the lanes, and prints them.
  connection_report report() const;
  /// Returns the peer's `connection_terms::info`; empty until it has answered.
  std::vector<std::byte> peer_info() const;
  /// Returns whether the rules of the server at this side (`server_options::rules`) allow the peer
  /// that. Without such a server, or rules, they do. Safe in handlers.
  bool is_allowed(access_right wanted, std::string_view name) const;
  /// Returns the number of the connection, as in its report; 0 without one.
  std::uint64_t id() const noexcept;

  /// Completes when everything that was started earlier over this connection, by any region, is
  /// visible at the peer.
  /// Errors: the connection's, timed_out, canceled, closed.
  request start_flush(const io_options& options = {});
  void flush(const io_options& options = {}, std::error_code& ec = throws);

  /// Orders operations: those that are started later take effect at the peer after all that were
  /// started earlier over this connection. The transfer method does not matter: reads see earlier
  /// writes, and writes land over them. Returns at once, and makes nothing visible. Later
  /// operations may have to wait. Messages are ordered among themselves, and so is RMA. Messages
  /// after RMA wait for the flush of the RMA, and RMA after messages goes by message.
  void fence();

  /// Gives up every operation in flight over this connection, as `request::cancel()` does. Waits
  /// for their ends, `limit` at most (not inside a handler). Returns how many are left. Writes that
  /// have ended, and are not known to be visible, count as failed: `flush` reports it. As for
  /// `worker::cancel_all`, calls that block go on, with what they wait for.
  std::size_t cancel_all(std::chrono::nanoseconds limit = std::chrono::nanoseconds::zero());

  /// Closes the connection. A second call does nothing, and reports nothing. With `flush`, reports
  /// the first failure of the outstanding operations, `timed_out`, or `no_memory`. After that the
  /// connection is dropped all the same. Inside a completion callback, only `abort` is allowed
  /// (`would_deadlock`).
  void close(close_mode mode = close_mode::flush, std::error_code& ec = throws);

  /// Closes without waiting. Completes when nothing of the connection is left, within
  /// `close_timeout`, with the outcome that `close()` would have reported. Allowed inside
  /// completion callbacks. The handlers are not called any more.
  request start_close(close_mode mode = close_mode::flush);

  /// Makes another connection to the same process watch this one from now on (see
  /// `endpoint_options::watched_by`). Earlier watching connections watch on. This connection keeps
  /// only the last one open. A connection that the worker serves (`message::peer()`) keeps none
  /// open: the caller has to.
  /// Errors: closed (either); invalid_argument (`companion` is this one, or keeps it open, also
  /// through others).
  void watch_by(const endpoint& companion, std::error_code& ec = throws);

  /// Returns the peer's socket address where it is known, else an empty address.
  socket_address peer() const;
  /// Returns this side's socket address where the connection was made by one, else an empty one.
  socket_address local() const;

  /// Returns the transports in use as "transport/device", as UCX names them.
  std::vector<std::string> transports() const;

  /// Returns UCX's endpoint, for calls of UCX's API; null where there is none. The caller must not
  /// close it. It is gone when the connection is: see `worker::native_handle()`.
  ucp_ep* native_handle() const noexcept;

  // Messages: docs/reference/messages.md says what is true when they are done, and in which order
  // they come. The forms of what is sent are in `payload`, those of the places for what comes in
  // `receive_target`. Every call that waits fails with `would_deadlock` inside a handler. All
  // memory but that of headers may be a device's (docs/how-to/gpu.md). An operation that can not
  // copy it fails alone, with `io_error`, `no_memory` or `not_supported`.

  /// Sends a message to a receive of the peer that wants the tag, or to the peer's
  /// `worker::on_message` of the number. Several runs or parts are one message, too: all of it
  /// comes, or nothing. Short ones go at once, longer ones when the peer has a place for them. A
  /// request that is dropped unfinished gives the send up.
  /// Completes: see `send_until`.
  /// Lifetime: the bytes of `what`, until the request is done (`send_memory::copied`: during the
  /// call). A header, and the list of several runs or parts, during the call. A buffer is taken
  /// over when the send starts. It is still the caller's after `would_block`, and where nothing was
  /// started.
  /// Errors: message_refused (the receiver gave up, or threw the message away), message_truncated
  /// (its memory was too small), would_block (`backpressure::fail`), empty_buffer,
  /// feature_disabled, closed, timed_out, canceled, connection_reset, no_memory. Of an active
  /// message also header_too_long, invalid_argument (a header in a device's memory), and
  /// no_such_handler, where the peer was asked first. For one that went at once,
  /// `message_handlers::on_refused` tells. The connection lives on, unless the error is the
  /// connection's.
  /// Cost: copies as `send_memory` says. A short message takes no round trip, a longer one takes
  /// one. After warm-up this library allocates nothing for a short one.
  request start_send(const message_destination& to, const payload& what,
                     const send_options& options = {});
  /// Like `start_send`, and waits.
  void send(const message_destination& to, const payload& what, const send_options& options = {},
            std::error_code& ec = throws);
  /// Sends without a request: `message_handlers::on_sent` gets `key` and the outcome, once, even if
  /// the connection is closed meanwhile. Only its deadline, `cancel_all()` and `close()` give the
  /// send up.
  /// Lifetime: the bytes of `what`, until `on_sent` is told; the rest as of `start_send`. After an
  /// error of this call a buffer is still the caller's.
  /// Errors: nothing was started then: would_block (`backpressure::fail`), empty_buffer,
  /// header_too_long, invalid_argument, feature_disabled, closed, the connection's.
  void post_send(const message_destination& to, const payload& what, std::uint64_t key,
                 const send_options& options = {}, std::error_code& ec = throws);
  /// Returns how long the header of an `active_message` may be on this side.
  /// `connection_report::max_header_size` has the limit of both sides.
  std::size_t max_header_size() const noexcept;

  /// Receives the next message of this peer with a tag that `wanted` accepts. Like
  /// `worker::start_receive`, which has Completes, Lifetime, Errors and Cost.
  /// Errors: also connection_reset and the connection's other errors, closed.
  request start_receive(const tag_match& wanted, const receive_target& into,
                        const io_options& options = {});
  /// Like `start_receive`, and waits. Returns the facts of the message.
  message_info receive(const tag_match& wanted, const receive_target& into,
                       const io_options& options = {}, std::error_code& ec = throws);

  /// Like `worker::probe` and `worker::take`, for this peer's messages. Return nothing, too, where
  /// there is no connection or no `feature::am`.
  std::optional<message_info> probe(const tag_match& wanted) const;
  std::optional<message> take(const tag_match& wanted);

  /// Sends bytes over the connection's byte stream, from one run or several. They arrive in order,
  /// and without boundaries. A send that fails may have sent its beginning.
  /// Completes: when the bytes can be used again. No call tells when the peer has them.
  /// Lifetime: that of `start_send`.
  /// Errors: those of `start_send`, but for those of a receiver; invalid_argument (a buffer, which
  /// is still the caller's; parts).
  /// Cost: that of borrowed memory. No round trip while there is room.
  request start_stream_send(const payload& what, const send_options& options = {});
  /// Like `start_stream_send`, and waits.
  void stream_send(const payload& what, const send_options& options = {},
                   std::error_code& ec = throws);
  /// Receives the next bytes of the peer's stream. `request::received().length` tells how many. It
  /// tells so even of a receive that failed: the next receive does not get those bytes again.
  /// Completes: see `stream_amount`.
  /// Lifetime: `into`, until the request is done.
  /// Errors: timed_out, canceled, feature_disabled, closed, the connection's (after everything that
  /// came before its end was read).
  /// Cost: one copy, or two of bytes that came before their receive. No round trip.
  request start_stream_receive(std::span<std::byte> into, stream_amount amount,
                               const io_options& options = {});
  std::size_t stream_receive(std::span<std::byte> into, stream_amount amount,
                             const io_options& options = {}, std::error_code& ec = throws);

  /// Sets the handlers for this connection's sends (none without `feature::am`). They replace those
  /// that were set before, by any handle of the connection.
  /// Lifetime: see `message_handlers`.
  void set_message_handlers(message_handlers handlers);

#if UCXIO_OLD_NAMES
#include "ucx/old_names/endpoint.ipp"
#endif

 private:
  friend struct detail::core_access;
  endpoint() noexcept = default;
  std::shared_ptr<detail::endpoint_core> core_;
  // of a message or a manager, which keep the handlers that were set before
  bool borrowed_ = false;
};

}  // namespace ucx
