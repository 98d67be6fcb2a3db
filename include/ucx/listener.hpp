// Accepting peers: the listener, and the requests that it gets.
#pragma once

#include <concepts>
#include <coroutine>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "ucx/completion_handler.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/old_option.hpp"
#include "ucx/request.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

namespace ucx {

namespace detail {
class pending_connection;
struct core_access;
}  // namespace detail

/// A peer that wants to connect, as a listener's handler gets it. To accept it, make an `endpoint`
/// of it. To refuse it, call `reject()`, or drop it.
class [[nodiscard]] UCXIO_EXPORT connection_request {
 public:
  connection_request(connection_request&& other) noexcept;
  connection_request& operator=(connection_request&& other) noexcept;
  /// Rejects the peer, unless it was accepted or rejected.
  ~connection_request();

  /// Returns the peer's address.
  const socket_address& peer() const noexcept;
  /// Returns the address that the peer connected to: the listener's.
  const socket_address& local() const noexcept;

  /// Refuses the peer, which gets `errc::connection_refused`.
  void reject() noexcept;

  /// Refuses the peer, and tells it why. The peer gets the error `why`, and the first 256 bytes of
  /// `error_message` in the error's text. Some errors only the peer itself can find out:
  /// `timed_out`, `connection_reset`, `unreachable`, `host_not_found`, `canceled`, `closed` and
  /// `closed_by_peer`. The peer gets those as `connection_refused`. At most 64 peers of a listener
  /// are told a reason at a time, each for as long as `connect_timeout`. Further peers, and peers
  /// on a context without `feature::am`, get `connection_refused` alone.
  void reject(errc why, std::string_view error_message = {});

 private:
  friend struct detail::core_access;
  explicit connection_request(std::unique_ptr<detail::pending_connection> pending) noexcept;

  std::unique_ptr<detail::pending_connection> pending_;
};

namespace detail {
struct accept_wait;
class listener_core;
}  // namespace detail

namespace detail {
/// Returns the function that gets exceptions of a handler of `request`:
/// `worker_options::on_exception`.
UCXIO_EXPORT std::function<void(std::exception_ptr)> reporter_of(const connection_request& request);
}  // namespace detail

/// Called from progress for every peer that wants to connect. It may make an `endpoint` of the
/// request now, or keep the request and do so later. If it returns an awaitable, that runs to its
/// end. The awaitable and the function itself are kept until then, also after the end of the
/// listener. An exception of either, however late, goes to the worker's `on_exception`, on the
/// thread that has resumed it.
class accept_handler : public move_only_handler<connection_request> {
  using base = move_only_handler<connection_request>;

 public:
  accept_handler() noexcept = default;
  template <class Function>
  requires(!std::same_as<std::remove_cvref_t<Function>, accept_handler> &&
           (std::constructible_from<base, Function> ||
            awaitable_handler<Function, connection_request>))
      accept_handler(Function&& function)  // NOLINT(google-explicit-constructor): as std::function
      : base(whole(std::forward<Function>(function))) {}

 private:
  /// Returns `function`, or a function that runs to its end the awaitable of `function`.
  template <class Function>
  static decltype(auto) whole(Function&& function) {
    if constexpr (awaitable_handler<Function, connection_request>) {
      return [kept = std::make_shared<std::decay_t<Function>>(std::forward<Function>(function))](
                 connection_request request) {
        try {
          auto report = detail::reporter_of(request);  // before it is moved from
          detail::run_to_end(kept, std::move(report), std::move(request));
        } catch (const std::bad_alloc&) {  // for the caller, which rejects the peer
        }
      };
    } else {
      return std::forward<Function>(function);
    }
  }
};

/// The options of a listener. Without `on_request` and without `manual_accept`, peers are
/// accepted by themselves. They are then served the regions of the worker's context until they
/// leave.
struct listener_options {
  /// Decides about each peer; it may be a coroutine.
  accept_handler on_request = {};
  /// For one version: `manual_accept`.
  detail::old_option<bool> awaited = {};
  /// Peers wait until `listener::accept()` takes them.
  bool manual_accept = awaited.value_or(false);
  /// For one version: `backlog`.
  detail::old_option<std::size_t> most_waiting = {};
  /// The number of peers that may wait for a decision; more are refused.
  std::size_t backlog = most_waiting.value_or(1024);
  /// For connections whose own options have no terms. Without these, the worker's terms count.
  std::optional<connection_terms> terms = {};
  /// Tell of the connections that were accepted here. They are not called any more after `close()`
  /// or the destructor has returned, unless one of them made that call.
  connection_events events = {};
  /// Called like `events`, when peers can not connect any more, or not all of them. UCX
  /// closes a port for data, for good, when the process has no descriptor left for a new peer
  /// (`docs/how-to/security.md`). Connected peers stay connected. Only another worker can listen
  /// again.
  move_only_handler<const listener_failure&> on_failure = {};
  /// For one version: `events` where they say nothing.
  detail::old_handler<move_only_handler<const connection_report&>> on_established = {};
  detail::old_handler<move_only_handler<const connection_end&>> on_refused = {};
  detail::old_handler<move_only_handler<const connection_end&>> on_closed = {};
};

/// Accepts peers on one socket address.
/// Threads: as the worker's.
class UCXIO_EXPORT listener {
 public:
  class acceptance;

  /// Listens on `address`. With port 0 the system chooses a port. Without options, accepts peers by
  /// itself.
  /// Errors: address_in_use, permission_denied, bad_address (empty, or not an address of this
  /// machine), too_many_files, closed (`parent`), invalid_argument and feature_disabled (terms),
  /// not_supported (IPv6 on a context whose configuration does not set TCP_AF_PRIO to "inet6": UCX
  /// would write beyond its buffers).
  listener(const worker& parent, const socket_address& address, listener_options options = {},
           std::error_code& ec = throws);

  /// Listens on `address`. `on_request` decides about each peer, and may be a coroutine. It is a
  /// template, so that `{}` stands for options.
  template <std::convertible_to<accept_handler> Handler>
  listener(const worker& parent, const socket_address& address, Handler&& on_request,
           std::error_code& ec = throws)
      : listener(parent, address, listener_options{.on_request = std::forward<Handler>(on_request)},
                 ec) {}

  listener(listener&& other) noexcept;
  listener& operator=(listener&& other) noexcept;
  /// Stops listening. Connections that were accepted live on.
  ~listener();

  /// Returns the address, with the port in use.
  const socket_address& address() const noexcept;

  /// Waits for the next peer: `co_await listening.accept()`, or `listening.accept().wait()`.
  /// REQUIRES: the option `manual_accept`.
  acceptance accept();

  /// Returns how many connections that were accepted here are active.
  std::size_t connections() const noexcept;

  /// Stops listening, and gives the address back; a `connection_request` that has not ended keeps
  /// it until then. Idempotent. A caller that waits in `accept()` gets `closed`. Without
  /// `connections`, those that were accepted live on. With it, closes every connection that was
  /// accepted here and is left, also those that an `endpoint` holds. Returns within the worker's
  /// `close_timeout`. Inside a completion callback they are closed at once, whatever `connections`
  /// says.
  void close(std::optional<close_mode> connections = {}) noexcept;

#if UCXIO_OLD_NAMES
  [[deprecated("the error code comes last, behind the options")]] listener(
      const worker& parent, const socket_address& address, std::error_code& ec)
      : listener(parent, address, listener_options(), ec) {}
#endif

 private:
  friend struct detail::core_access;
  std::shared_ptr<detail::listener_core> core_;
};

/// A wait for one peer. Destroyed before its end, it takes no peer.
class [[nodiscard]] UCXIO_EXPORT listener::acceptance {
 public:
  acceptance(acceptance&& other) noexcept;
  acceptance& operator=(acceptance&& other) = delete;
  ~acceptance();

  /// Waits until a peer wants to connect. With an error the request is empty.
  /// Errors: timed_out (the worker's `operation_timeout`, unless the options say otherwise), closed
  /// (the listener), canceled (a handler destroyed this object), would_deadlock inside a completion
  /// callback; invalid_argument (the listener has no `manual_accept`).
  connection_request wait(const io_options& options = {}, std::error_code& ec = throws);

  bool await_ready() const noexcept;
  /// Resumes on the thread that drives progress.
  void await_suspend(std::coroutine_handle<> coroutine);
  connection_request await_resume();

#if UCXIO_OLD_NAMES
  [[deprecated("the error code comes last")]] connection_request wait(
      std::error_code& ec, const io_options& options = {}) {
    return wait(options, ec);
  }
#endif

 private:
  friend class listener;
  acceptance(std::shared_ptr<detail::listener_core> core,
             std::shared_ptr<detail::accept_wait> wait) noexcept;

  std::shared_ptr<detail::listener_core> core_;
  std::shared_ptr<detail::accept_wait> wait_;
};

}  // namespace ucx
