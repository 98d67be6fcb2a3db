// A connection to one peer: UCX's endpoint, our session over it, and what waits for the peer.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/heartbeat.hpp"
#include "base/reserved_share.hpp"
#include "connection/connection_messages.hpp"
#include "connection/connection_observer.hpp"
#include "connection/endpoint_state.hpp"
#include "connection/key_holder.hpp"
#include "connection/operation_book.hpp"
#include "connection/owing_connection.hpp"
#include "ucp/piece_sizes.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/socket_address.hpp"
#include "wire/frame.hpp"
#include "wire/introduction.hpp"
#include "worker/driven_connection.hpp"
#include "worker/operation.hpp"
#include "worker/worker_lock.hpp"

namespace ucx::detail {

class channel_receiver;
class close_operation;
class message_link;
class process_watch;
class worker_core;

/// Everything but the shared pointers happens under the worker's lock.
class endpoint_core final : public driven_connection,
                            public owing_connection,
                            public std::enable_shared_from_this<endpoint_core> {
 public:
  enum class role { initiator, acceptor };  ///< The initiator says hello.

  /// Makes an endpoint with UCX. `keep_alive` is empty for peers that the worker itself serves.
  static std::shared_ptr<endpoint_core> make(worker_core& worker,
                                             std::shared_ptr<worker_core> keep_alive,
                                             ucp_ep_params_t& params, role side,
                                             endpoint_options options, std::error_code& ec);
  ~endpoint_core();
  endpoint_core(const endpoint_core&) = delete;
  endpoint_core& operator=(const endpoint_core&) = delete;

  worker_core& worker() const noexcept { return worker_; }
  bool keeps_worker() const noexcept override { return keep_alive_ != nullptr; }
  ucp_ep_h handle() const noexcept { return handle_; }
  std::uint64_t session() const noexcept { return session_; }
  endpoint_state state() const noexcept { return state_; }
  role side() const noexcept { return role_; }
  bool detects_failure() const noexcept override { return detects_failure_; }
  /// Returns why the endpoint takes nothing new; no error while it does.
  std::error_code status() const noexcept;
  /// Returns whether it takes something new, which goes out at once.
  bool is_ready() const noexcept { return state_ == endpoint_state::ready && !taking_leave_; }
  /// Returns why the connection was lost; no error while it was not.
  std::error_code failure() const noexcept;
  /// Returns UCX's or our own words about the failure.
  std::string words() const override;
  void set_peer(const socket_address& peer) { peer_ = peer; }
  /// Remembers the address that its peer's hello carried.
  void set_address(std::vector<std::byte> address) { address_ = std::move(address); }
  /// Returns whether it is the connection of a hello with this address, or over this endpoint.
  bool came_by(std::span<const std::byte> address, ucp_ep_h over) const noexcept;
  const socket_address& peer() const noexcept { return peer_; }
  /// Returns the peer in words: its socket address, or its session.
  std::string peer_name() const;
  /// Returns UCX's "transport/device" pairs of this endpoint.
  std::vector<std::string> transports();
  /// Returns whether the system lets this process and the peer's share memory.
  bool shares_memory() noexcept;
  /// Returns this side's address, as UCX tells it; empty where it does not.
  socket_address local() const;
  connection_state public_state() const noexcept;
  std::uint64_t number() const noexcept override { return number_; }
  const introduction& peer_introduction() const noexcept { return theirs_; }
  /// Returns how much both sides can have in one message; until the peer has said so, the least.
  const piece_sizes& pieces() const noexcept { return pieces_; }
  connection_report report();
  connection_end end() const;
  void log(log_level level, const char* what, const std::string& more = {}) const;
  /// Returns whether its observer has not been told yet what has become of it.
  bool untold() const noexcept { return untold_ > 0 || unsaid_ != 0; }
  /// What is asked of it, and told to the peer. Before hello.
  void set_terms(connection_terms terms) { terms_ = std::move(terms); }
  /// Who else is told what becomes of it. Before hello.
  void set_observer(std::weak_ptr<connection_observer> observer) {
    observer_ = std::move(observer);
  }
  /// Returns whether `observer` is told of it.
  bool is_observed_by(const connection_observer& observer) const noexcept;

  // The session (connection_table calls these when frames arrive).
  void say_hello(clock::time_point connect_deadline);
  void hello_sent() noexcept { hello_sent_ = true; }  ///< UCX has connected the two.
  void await_hello(std::chrono::nanoseconds limit);   // zero, or less: the worker's
  /// Takes the session of a peer's hello; it is not open yet.
  void take_session(std::uint64_t session);
  /// Returns why this side does not want the connection, and says so in `words`.
  std::error_code objection(const introduction& theirs, std::string& words);
  void welcome(introduction&& theirs, std::uint64_t room);
  /// Answers hello with `why`, and drops the connection when the peer has gone, or soon.
  void refuse(std::error_code why, const std::string& words);
  /// Whoever says hello is refused.
  void refuse_hello(std::error_code why, std::string words);
  bool refuses_hello() const noexcept { return static_cast<bool>(refusal_); }
  /// Waits, without the lock, until the peer has answered or the connection is lost.
  void wait_connected(std::error_code& ec);
  void welcomed(const frame& answer, std::span<const std::byte> payload);
  void heard() noexcept { heartbeat_.heard(); }
  /// Returns whether what the peer says is for anybody. Its welcome may be on the way still; but
  /// one that was refused or not welcomed here, or has failed, has nothing to say.
  bool listens() const noexcept {
    if (state_ == endpoint_state::connecting) return role_ == role::initiator;
    return state_ == endpoint_state::ready;
  }
  void peer_said_bye(std::error_code why);
  void peer_said_farewell() noexcept;
  bool heard_farewell() const noexcept { return farewell_; }
  bool leaving() const noexcept { return leaving_; }
  /// Tells the peer, once, that this side will say nothing more, and why.
  void say_bye(std::error_code why);

  /// Sends a frame without payload. Failures are left to UCX's error handler and the heartbeat.
  void send(const frame& sent);
  /// Answers a frame of the peer's. A peer that asks and takes no answers is dropped.
  void reply(const frame& answer, std::span<const std::byte> payload = {});
  void reply_sent() noexcept { --replies_; }
  /// Counts a reply that is about to be sent; returns whether it may.
  bool may_reply();
  message_link& messages() const noexcept { return link_; }

  // Control messages, if there is a client or a server.
  void set_receiver(channel_receiver* receiver) noexcept { receiver_ = receiver; }
  void send_control(std::span<const std::byte> message);
  void control_sent(std::size_t bytes) noexcept { unsent_control_ -= bytes; }
  std::size_t unsent_control() const noexcept { return unsent_control_; }
  /// A message came, inside UCX's callback: it is delivered afterwards.
  void control_arrived(std::uint64_t length, std::span<const std::byte> message);
  /// Something waits, or waits no more, for a control message: the heartbeat watches meanwhile.
  void expect_control() noexcept;
  void expected_control() noexcept { --controls_expected_; }
  operation_book& operations() noexcept { return operations_; }
  /// The regions that are open over this connection: their keys go before it.
  void add(key_holder& opened) { keys_.push_back(&opened); }
  void remove(key_holder& closed) noexcept { std::erase(keys_, &closed); }
  bool answers_pending() const noexcept;
  /// UCX's own requests in flight, of any kind: close waits for them.
  void transfer_started() noexcept { ++transfers_; }
  void transfer_ended() noexcept {
    if (--transfers_ == 0) look_at_closing();
  }
  unsigned transfers() const noexcept { return transfers_; }

  // Copies that their senders have left to UCX; the peer may not let too many of them pile up.
  void copy_left() noexcept;
  void copy_taken() noexcept { --copies_left_; }

  // The owner's answers in flight to this peer.
  void answer_started() noexcept { ++answers_; }
  void answer_ended() noexcept { --answers_; }
  unsigned answers() const noexcept { return answers_; }
  /// Gives up everything that is in flight over this connection.
  void cancel_operations() noexcept;

  /// UCX reported `status` of the connection; it fails when UCX's callbacks are over.
  void lost(ucs_status_t status) noexcept;
  /// Keeps UCX's words about a failure for error texts.
  void note(ucs_status_t status);
  /// Fails the connection when UCX's callbacks are over: the peer is to blame, or in the way.
  void blame(errc why, const char* words) noexcept;
  /// The connection is lost: everything outstanding ends with `why`, and UCX's endpoint is dropped.
  void fail(std::error_code why, const std::string& words) override;
  /// Looks at connect deadline and heartbeat; returns when to look again.
  clock::time_point tick(clock::time_point now);

  /// Sets the user's handlers, of which those are called that would have been.
  void arm(endpoint_options&& handlers);
  /// The user's handlers are not called any more, and may be gone. Takes the lock itself.
  void disarm() noexcept;
  /// See endpoint::close. Takes the lock itself.
  void close(close_mode mode, std::error_code& ec);
  /// See endpoint::start_close: an operation, one reference the caller's; nothing where it is late.
  close_operation* start_close(close_mode mode);
  /// For the operation that closes: whether it may go on is looked at, soon.
  void look_at_closing() noexcept;
  /// Has it do this (`owing_connection`) behind UCX's callbacks, whatever memory is left.
  void owe(unsigned what) noexcept;
  bool pay() noexcept;  ///< Does it; returns whether there was memory for all of it.
  /// Fails `ward` when this connection ends other than by closing it here. Takes the lock itself.
  void watch(const std::shared_ptr<endpoint_core>& ward);
  /// For the same: ends what is left, and tells why the connection was lost, if it was.
  std::error_code leave();
  /// For the same: UCX has let go of the endpoint's own requests.
  bool dropped_by_ucx() const noexcept {
    return !closing_ && (!detects_failure_ || transfers_ == 0);
  }
  void closed() noexcept;  ///< For the same: it is over.
  /// Keeps the connection that watches this one, and returns which did before.
  std::shared_ptr<endpoint_core> keep(std::shared_ptr<endpoint_core> watching) noexcept;
  const std::shared_ptr<endpoint_core>& watched_by() const noexcept { return watched_by_; }
  void process_ended();
  /// Drops UCX's endpoint at once and waits, bounded, until UCX has let go of everything.
  void drop() noexcept override;
  bool dropped() const noexcept { return handle_ == nullptr && !closing_; }  ///< By UCX.
  /// Returns whether nothing can come back to it: no callback of UCX's, no operation's handler.
  bool over() const noexcept;

 private:
  endpoint_core(worker_core& worker, std::shared_ptr<worker_core> keep_alive, role side,
                endpoint_options options);
  static void on_ucx_error(void* self, ucp_ep_h endpoint, ucs_status_t status);
  static void on_closed(void* request, ucs_status_t status, void* self);
  void retire() noexcept;
  void drop_handlers() noexcept;
  void fail_operations(std::error_code why);
  enum class event { established, refused, closed };
  void queue_tell(event what);
  void tell(event what);
  void say_end() noexcept;
  void fail_soon(std::error_code why) noexcept;
  /// The session is open: what waited goes out, and those who wait for it are told.
  void establish(introduction&& theirs, std::uint64_t room);
  template <class Handler, class Told>
  void call(std::unique_lock<worker_lock>& guard, Handler& handler, const Told& told);
  void tell_observer(event what);
  void fail_wards();
  std::vector<std::byte> introduce(std::string words) const;
  std::error_code unacceptable_transport(std::string& words);
  void refused(std::error_code why, const std::string& words, bool finally);
  void decline(std::error_code why, const std::string& words);
  void close_at_once(close_mode mode, std::error_code& ec);
  void start_drop() noexcept;
  void see_to_sockets() noexcept;
  bool tells_process() const noexcept;
  void watch_process();
  void drop_keys() noexcept;

  worker_core& worker_;
  std::shared_ptr<worker_core> keep_alive_;
  role role_;
  endpoint_options options_;
  ucp_ep_h handle_ = nullptr;
  bool closing_ = false;     // UCX has not let go of the endpoint yet
  bool not_closed_ = false;  // nor ever will, before its worker goes
  bool detects_failure_ = true;
  endpoint_state state_ = endpoint_state::connecting;
  std::uint64_t session_ = 0;
  clock::time_point connect_deadline_ = clock::time_point::max();
  std::error_code error_;
  std::string words_;
  socket_address peer_;
  const std::uint64_t number_;
  connection_terms terms_;
  introduction theirs_;
  piece_sizes pieces_;
  std::weak_ptr<connection_observer> observer_;
  int untold_ = 0;               // of what its observer is to be told
  unsigned unsaid_ = 0;          // of its end, for want of memory: bits of `say_end`
  std::error_code leaving_why_;  // what the end of a peer that leaves is called
  std::string leaving_words_;
  std::error_code refusal_;  // of whoever says hello
  std::string refusal_words_;
  std::vector<std::weak_ptr<endpoint_core>> wards_;
  std::shared_ptr<endpoint_core> watched_by_;
  std::unique_ptr<process_watch> process_;
  close_operation* closer_ = nullptr;
  reserved_share again_;
  std::vector<std::byte> address_;
  unsigned hellos_ = 0;
  heartbeat heartbeat_;
  bool hello_sent_ = false;
  bool answered_ = false;  // hello, by a refusal that is seen to soon
  bool leaving_ = false;
  bool farewell_ = false;
  bool said_bye_ = false;
  bool losing_ = false;
  int telling_ = 0;  // users' handlers
  bool taking_leave_ = false;
  unsigned answers_ = 0;
  unsigned replies_ = 0;
  unsigned copies_left_ = 0;
  unsigned controls_expected_ = 0;
  std::size_t unsent_control_ = 0;
  channel_receiver* receiver_ = nullptr;
  const std::unique_ptr<connection_messages> messages_;
  message_link& link_;  // the same, for those who send and receive
  operation_book operations_{*this};
  std::vector<key_holder*> keys_;
  unsigned transfers_ = 0;
};

inline endpoint_core* operation::endpoint() const noexcept {
  return static_cast<endpoint_core*>(connection_);
}

}  // namespace ucx::detail
