// A connection to one peer: UCX's endpoint, our session over it, and what waits for the peer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "detail/flush_operation.hpp"
#include "detail/frame.hpp"
#include "detail/heartbeat.hpp"
#include "detail/intrusive_list.hpp"
#include "detail/message_operation.hpp"
#include "detail/operation.hpp"
#include "detail/ucp_api.hpp"
#include "detail/write_epochs.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/worker_address.hpp"

namespace ucx::detail {

class remote_region_core;
class worker_core;

enum class endpoint_state {
  connecting,  ///< Hello was sent, or is awaited.
  ready,       ///< The peer answered; operations go out.
  failed,      ///< The connection is lost; `error()` says why.
  closed,      ///< close() was called here, and is over.
};

/// Everything but the shared pointers happens under the worker's lock.
class endpoint_core : public std::enable_shared_from_this<endpoint_core> {
 public:
  /// Who made the connection decides who says hello.
  enum class role { initiator, acceptor };

  /// Makes an endpoint with UCX. `keep_alive` is empty for peers that the worker itself serves.
  static std::shared_ptr<endpoint_core> make(worker_core& worker,
                                             std::shared_ptr<worker_core> keep_alive,
                                             ucp_ep_params_t& params, role side,
                                             endpoint_options options, std::error_code& ec);
  ~endpoint_core();
  endpoint_core(const endpoint_core&) = delete;
  endpoint_core& operator=(const endpoint_core&) = delete;

  worker_core& worker() const noexcept { return worker_; }
  ucp_ep_h handle() const noexcept { return handle_; }
  std::uint64_t session() const noexcept { return session_; }
  endpoint_state state() const noexcept { return state_; }
  role side() const noexcept { return role_; }
  bool detects_failure() const noexcept { return detects_failure_; }
  /// Returns why the endpoint takes nothing new; no error while it does.
  std::error_code status() const noexcept;
  /// Returns UCX's or our own words about the failure.
  std::string words() const;
  void set_peer(const socket_address& peer) { peer_ = peer; }
  const socket_address& peer() const noexcept { return peer_; }
  /// Returns the peer in words: its socket address, or its session.
  std::string peer_name() const;
  /// Returns UCX's "transport/device" pairs of this endpoint.
  std::vector<std::string> transports();

  // The session (connection_table calls these when frames arrive).
  void say_hello(clock::time_point connect_deadline);
  void await_hello();
  void accept_session(std::uint64_t session);
  /// Waits, without the lock, until the peer has answered or the connection is lost.
  void wait_connected(std::error_code& ec);
  void welcomed(std::error_code refusal, unsigned peer_version);
  void heard() noexcept { heartbeat_.heard(); }
  void peer_said_bye() noexcept;
  void peer_said_farewell() noexcept { farewell_ = true; }
  bool leaving() const noexcept { return leaving_; }
  /// Tells the peer, once, that this side will say nothing more.
  void say_bye();

  /// Sends a frame without payload. Failures are left to UCX's error handler and the heartbeat.
  void send(const frame& sent);

  // Operations over this endpoint.
  void add(message_operation& started);
  void remove(message_operation& ended) noexcept;
  /// The writes by message, answered or not; the end of each goes through `write_ended`.
  write_epochs& writes() noexcept { return writes_; }
  void write_ended(std::uint64_t epoch);
  /// Flushes of the connection that wait for writes.
  void add(flush_operation& waiting) noexcept { flushes_.push_back(waiting); }
  void remove(flush_operation& ended) noexcept;
  /// The regions that are open over this connection: their keys go before it.
  void add(remote_region_core& opened) { regions_.push_back(&opened); }
  void remove(remote_region_core& closed) noexcept { std::erase(regions_, &closed); }
  bool answers_pending() const noexcept { return !asked_.empty() || !queued_.empty(); }
  /// UCX's own requests in flight, of any kind: close waits for them.
  void transfer_started() noexcept { ++transfers_; }
  void transfer_ended() noexcept { --transfers_; }
  unsigned transfers() const noexcept { return transfers_; }

  // The owner's answers in flight to this peer.
  void answer_started() noexcept { ++answers_; }
  void answer_ended() noexcept { --answers_; }
  unsigned answers() const noexcept { return answers_; }
  /// Cancels what `region` started over this connection.
  void cancel_operations_of(const remote_region_core& region) noexcept;

  /// UCX reported `status` of the connection; it fails when UCX's callbacks are over.
  void lost(ucs_status_t status) noexcept;
  /// Keeps UCX's words about a failure for error texts.
  void note(ucs_status_t status);
  /// The connection is lost: everything outstanding ends with `why`, and UCX's endpoint is dropped.
  void fail(std::error_code why, const std::string& words);
  /// Looks at connect deadline and heartbeat; returns when to look again.
  clock::time_point tick(clock::time_point now);

  /// See endpoint::close. Takes the lock itself.
  void close(close_mode mode, std::error_code& ec);
  /// Drops UCX's endpoint at once and waits, bounded, until UCX has let go of everything.
  void drop() noexcept;
  /// Returns whether UCX has let go of the endpoint.
  bool dropped() const noexcept { return handle_ == nullptr && closing_ == nullptr; }

 private:
  endpoint_core(worker_core& worker, std::shared_ptr<worker_core> keep_alive, role side,
                endpoint_options options);
  static void on_ucx_error(void* self, ucp_ep_h endpoint, ucs_status_t status);
  void retire() noexcept;
  void fail_operations(std::error_code why);
  void flush_for_close(clock::time_point until, std::error_code& ec);
  void start_drop() noexcept;
  void drop_keys() noexcept;
  void send_queued();

  worker_core& worker_;
  std::shared_ptr<worker_core> keep_alive_;
  role role_;
  endpoint_options options_;
  ucp_ep_h handle_ = nullptr;
  struct closing_endpoint;
  closing_endpoint* closing_ = nullptr;  // UCX has not let go of the endpoint yet
  bool detects_failure_ = true;
  endpoint_state state_ = endpoint_state::connecting;
  std::uint64_t session_ = 0;
  clock::time_point connect_deadline_ = clock::time_point::max();
  std::error_code error_;
  std::string words_;
  socket_address peer_;
  heartbeat heartbeat_;
  bool leaving_ = false;
  bool farewell_ = false;
  bool said_bye_ = false;
  bool losing_ = false;
  bool taking_leave_ = false;
  bool sending_queued_ = false;
  unsigned answers_ = 0;
  write_epochs writes_;
  intrusive_list<flush_operation, flush_tag> flushes_;
  std::vector<remote_region_core*> regions_;
  unsigned transfers_ = 0;
  intrusive_list<message_operation, waiting_tag> asked_;   // sent, the peer has to answer
  intrusive_list<message_operation, waiting_tag> queued_;  // not sent yet
};

/// Reads the "transport/device" pairs out of what UCX prints about an endpoint.
std::vector<std::string> parse_transports(std::string_view printed);

}  // namespace ucx::detail
