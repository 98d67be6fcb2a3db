// UCX's listener, and what it does with those who knock.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "base/handle_place.hpp"
#include "base/result.hpp"
#include "connection/connection_observer.hpp"
#include "connection/listener_ports.hpp"
#include "connection/listening_place.hpp"
#include "connection/listening_socket.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/context.hpp"
#include "ucx/listener.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

class endpoint_core;
class pending_connection;
class worker_core;

/// Somebody who waits for a peer.
struct accept_wait {
  accept_wait();
  ~accept_wait();
  bool over = false;
  std::error_code why = {};  ///< Why no peer came.
  std::unique_ptr<pending_connection> came;
  std::coroutine_handle<> coroutine = {};
};

/// Words of error texts about IPv6, on a context that was not made for it.
inline constexpr const char* no_ipv6 =
    ": IPv6 needs a context whose configuration sets TCP_AF_PRIO to \"inet6\"";

class listener_core final : public connection_observer,
                            public std::enable_shared_from_this<listener_core> {
 public:
  /// Listens. Without a handler the worker accepts and serves everybody, or peers are awaited.
  static result<std::shared_ptr<listener_core>> make(std::shared_ptr<worker_core> worker,
                                                     const socket_address& address,
                                                     listener_options options);
  ~listener_core() override;
  listener_core(const listener_core&) = delete;
  listener_core& operator=(const listener_core&) = delete;

  worker_core& worker() const noexcept { return *worker_; }
  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  ucp_listener_h handle() const noexcept { return handle_; }
  const socket_address& address() const noexcept { return address_; }
  handle_place& place_of_handle() noexcept { return place_; }
  /// Takes no further request; returns when no handler runs, unless it is called inside of one.
  void close() noexcept;
  /// Closes, and gives the address back. Requests that the program has to decide about keep the
  /// address until the last of them has ended: rejecting needs UCX's listener.
  void close_and_stop() noexcept;
  /// Gives the address back, and refuses peers that have not been decided about. A peer that has
  /// connected and sent no request finds the connection reset, or does when it speaks. REQUIRES:
  /// closed; what was handed over has been taken.
  void stop() noexcept;
  /// Closes what was accepted here.
  void close_connections(close_mode mode) noexcept;
  /// Refuses what UCX handed over.
  void reject(ucp_conn_request_h request) noexcept;
  const connection_terms& terms() const noexcept;
  /// Gives peers that come from here on to its own worker and these, in turn; all are of one
  /// context. The listener does not hear of the connections of the others. REQUIRES: no handlers,
  /// and none awaited.
  void spread_over(std::vector<std::weak_ptr<worker_core>> others);
  /// Returns how many connections that were accepted here are active.
  std::size_t connections() const noexcept;

  // Requests that somebody has to decide about. They may end on any thread.
  void begin_pending() noexcept { ++pending_; }
  void end_pending() noexcept { --pending_; }

  // Refusals with a reason, which keep a connection for a while. Under the lock.
  bool begin_refusal() noexcept;
  void end_refusal() noexcept { --refusals_; }

  // Waits for peers. They take the lock themselves.
  std::shared_ptr<accept_wait> add_wait();
  void remove_wait(accept_wait& wait) noexcept;
  bool is_over(const accept_wait& wait) const noexcept;
  void resume_at_end(const std::shared_ptr<accept_wait>& wait, std::coroutine_handle<> coroutine);
  result<connection_request> await(accept_wait& wait, std::chrono::nanoseconds timeout);

  void established(endpoint_core& connection) override;
  void ended(endpoint_core& connection, bool was_established) override;

 private:
  listener_core(std::shared_ptr<worker_core> worker, listener_options options);
  static void on_connection(ucp_conn_request_h request, void* self);
  void arrived(ucp_conn_request_h request);
  void guard_ports(std::vector<guarded_port> own);
  void end_overdue(std::vector<std::uint64_t> overdue);
  void lose(const guarded_port& port);
  void await_requests() noexcept;
  void await_asynchronous_thread() noexcept;
  void decide();
  void call();
  void match() noexcept;
  void end(const std::shared_ptr<accept_wait>& wait) noexcept;
  std::shared_ptr<worker_core> next_worker() noexcept;
  static void hand_over(worker_core& other, std::unique_ptr<pending_connection> pending);
  template <class Call>
  void queue(Call call);
  std::unique_ptr<pending_connection> take() noexcept;

  const process_stamp made_;
  std::shared_ptr<worker_core> worker_;
  listener_options options_;
  handle_place place_;
  unsigned refusals_ = 0;
  std::atomic<std::size_t> pending_ = 0;
  std::deque<std::shared_ptr<accept_wait>> waits_;
  std::vector<std::weak_ptr<worker_core>> others_;
  std::size_t turn_ = 0;  // of the next one: 0 is its own worker's
  bool closed_ = false;
  int calling_ = 0;                         // one of the user's handlers
  std::deque<ucp_conn_request_h> arrived_;  // not decided about yet
  ucp_listener_h handle_ = nullptr;
  socket_address address_;
  std::optional<listening_socket> socket_;
  listening_place listens_at_;
  std::unique_ptr<listener_ports> ports_;  // where UCX listens
  ::pid_t owner_ = -1;  // the process that listens: a child of fork() has the same socket
};

}  // namespace ucx::detail
