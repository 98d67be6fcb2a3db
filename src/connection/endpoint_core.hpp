// A connection to one peer: its life, and the parts that know the rest of it.
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "base/reserved_share.hpp"
#include "base/result.hpp"
#include "connection/connection_messages.hpp"
#include "connection/endpoint_closing.hpp"
#include "connection/endpoint_control.hpp"
#include "connection/endpoint_liveness.hpp"
#include "connection/endpoint_observers.hpp"
#include "connection/endpoint_quota.hpp"
#include "connection/endpoint_session.hpp"
#include "connection/endpoint_state.hpp"
#include "connection/operation_book.hpp"
#include "connection/owing_connection.hpp"
#include "connection/passed_files.hpp"
#include "connection/region_grants.hpp"
#include "connection/remote_key_owner.hpp"
#include "connection/staged_transfers.hpp"
#include "connection/ucx_endpoint.hpp"
#include "ucp/piece_sizes.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/socket_address.hpp"
#include "wire/frame.hpp"
#include "worker/driven_connection.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

class client_account;
class message_link;
class worker_core;
struct retirement;

/// A connection, as all parts see it: which state it is in, how it fails, and how it closes. It has
/// more functions, and parts, than a class should, for each of these parts, operations and users
/// needs a few of them. Everything but the shared pointers happens under the worker's lock.
class endpoint_core final : public driven_connection,
                            public owing_connection,
                            private ucx_endpoint::owner,
                            public std::enable_shared_from_this<endpoint_core> {
 public:
  enum class role { initiator, acceptor };  ///< The initiator says hello.

  /// Makes an endpoint with UCX. `keep_alive` is empty for peers that the worker itself serves.
  static result<std::shared_ptr<endpoint_core>> make(worker_core& worker,
                                                     std::shared_ptr<worker_core> keep_alive,
                                                     ucp_ep_params_t& params, role side,
                                                     endpoint_options options);
  ~endpoint_core();
  endpoint_core(const endpoint_core&) = delete;
  endpoint_core& operator=(const endpoint_core&) = delete;

  worker_core& worker() const noexcept { return worker_; }
  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  bool keeps_worker() const noexcept override { return keep_alive_ != nullptr; }
  role side() const noexcept { return role_; }
  /// Returns whether the two exchange messages: the peer has this library, and this side's context
  /// feature::am.
  bool speaks() const noexcept { return speaks_; }
  bool is_plain() const noexcept { return plain_; }  ///< The peer is UCX alone.
  std::uint64_t number() const noexcept override { return number_; }

  // Its parts.
  const ucx_endpoint& ucx() const noexcept { return ucx_; }
  endpoint_session& session() noexcept { return session_; }
  const endpoint_session& session() const noexcept { return session_; }
  endpoint_observers& observers() noexcept { return observers_; }
  const endpoint_observers& observers() const noexcept { return observers_; }
  endpoint_liveness& liveness() noexcept { return liveness_; }
  endpoint_closing& closing() noexcept { return closing_; }
  endpoint_control& control() noexcept { return control_; }
  endpoint_quota& quota() noexcept { return quota_; }
  region_grants& grants() noexcept { return grants_; }
  const region_grants& grants() const noexcept { return grants_; }
  passed_files& files() noexcept { return files_; }
  operation_book& operations() noexcept { return operations_; }
  /// For those who send and receive.
  message_link& messages() const noexcept { return link_; }

  endpoint_state state() const noexcept { return state_; }
  /// Returns why the endpoint takes nothing new; no error while it does.
  std::error_code status() const noexcept;
  /// Returns whether it takes something new, which goes out at once.
  bool is_ready() const noexcept {
    return state_ == endpoint_state::ready && !closing_.has_begun();
  }
  /// Returns whether what the peer says is for anybody. Its welcome may be on the way still; but
  /// one that was refused or not welcomed here, or has failed, has nothing to say.
  bool listens() const noexcept {
    if (state_ == endpoint_state::connecting) return role_ == role::initiator;
    return state_ == endpoint_state::ready;
  }
  /// Returns why the connection was lost; no error while it was not.
  std::error_code failure() const noexcept;
  /// Returns why it was lost, also when it was closed since.
  std::error_code why_ended() const noexcept { return error_; }
  /// Returns UCX's or our own words about the failure.
  std::string words() const override;
  std::optional<int> ucx_status_of(std::error_code why) const noexcept override;

  void set_peer(const socket_address& peer) { peer_ = peer; }
  /// The server that it has come to counts it; null: it has no limits.
  void set_account(std::shared_ptr<client_account> account) noexcept {
    account_ = std::move(account);
  }
  const std::shared_ptr<client_account>& account() const noexcept { return account_; }
  const socket_address& peer() const noexcept { return peer_; }
  /// Returns the peer in words: its socket address, or its session.
  std::string peer_name() const;
  /// Returns this side's address, as UCX tells it; empty where it does not.
  socket_address local() const { return peer_.empty() ? socket_address() : ucx_.local(); }
  /// Returns how much both sides can have in one message; until the peer has said so, the least.
  const piece_sizes& pieces() const noexcept { return pieces_; }
  connection_state public_state() const noexcept;
  connection_report report() const;
  connection_end end() const;
  void log(log_level level, const char* what, const std::string& more = {}) const;
  /// Warns, once, that UCX could not register bytes to send, so that it copies them.
  void tell_of_copies(ucs_status_t status);

  /// Waits, without the lock, until the peer has answered or the connection is lost.
  std::error_code wait_connected();
  /// The session is open, and the peer grants so much room: what waited goes out, and those who
  /// wait for it are told.
  void establish(std::uint64_t room);

  /// Sends a frame without payload. Failures are left to UCX's error handler and the heartbeat.
  void send(const frame& sent);
  /// Answers a frame of the peer's. A peer that asks and takes no answers is dropped.
  void reply(const frame& answer, std::span<const std::byte> payload = {});

  ucp_ep_h handle() const noexcept { return ucx_.handle(); }
  bool detects_failure() const noexcept override { return ucx_.detects_failure(); }
  /// Returns whether a lane was RDMA hardware when the connection was established.
  bool has_rdma_lane() const noexcept { return !hardware_.empty(); }
  /// UCX's own requests in flight, of any kind: close waits for them.
  void transfer_started() noexcept { ucx_.transfer_started(); }
  void transfer_ended() noexcept {
    if (ucx_.transfer_ended()) closing_.look();
  }
  /// Transfers by RMA that UCX emulates; null where there were none.
  staged_transfers* staged() const noexcept { return staged_.get(); }
  /// Makes that.
  void make_staged() {
    if (!staged_) staged_ = std::make_unique<staged_transfers>(*this);
  }
  // The owner's answers in flight to this peer, and their bytes.
  void answer_started(std::uint64_t bytes) noexcept;
  void answer_ended(std::uint64_t bytes) noexcept;
  unsigned answers() const noexcept { return answers_; }
  bool answers_pending() const noexcept;
  /// The regions that are open over this connection: their keys go before it.
  void add(remote_key_owner& opened) { keys_.push_back(&opened); }
  void remove(remote_key_owner& closed) noexcept { std::erase(keys_, &closed); }
  /// Gives up everything that is in flight over this connection.
  void cancel_operations() noexcept;

  /// UCX reported `status` of the connection; it fails when UCX's callbacks are over.
  void lost(ucs_status_t status) noexcept override;
  /// UCX has connected to a peer that is not greeted: the connection stands behind UCX's callbacks.
  void wired_up() noexcept override;
  void wire_up() noexcept { ucx_.wire_up(); }
  /// Keeps UCX's words about a failure for error texts.
  void note(ucs_status_t status);
  /// Fails the connection when UCX's callbacks are over: the peer is to blame, or in the way.
  void blame(errc why, const char* words) noexcept;
  /// The connection is lost: everything outstanding ends with `why`, and UCX's endpoint is dropped.
  void fail(std::error_code why, const std::string& words,
            std::optional<int> ucx_status = {}) override;
  void process_ended();  ///< That of the peer: the connection is lost.
  /// Looks at connect deadline and heartbeat; returns when to look again.
  clock::time_point tick(clock::time_point now);
  /// Has it do this (`owing_connection`) behind UCX's callbacks, whatever memory is left.
  void owe(unsigned what) noexcept;
  bool pay() noexcept;  ///< Does it; returns whether there was memory for all of it.

  void closed() noexcept;  ///< On this side: it is over.
  /// Has UCX close its sockets, which it does in later rounds: a worker that the caller drives may
  /// never see these.
  void see_to_sockets() noexcept;
  /// Drops UCX's endpoint at once and waits, bounded, until UCX has let go of everything. To a peer
  /// that UCX may end by that, it is left: see `ucx_endpoint`.
  void drop() noexcept override;
  /// Drops it where it was left.
  void drop_left() noexcept;
  /// Returns whether nothing can come back to it: no callback of UCX's, no operation's handler.
  bool over() const noexcept { return ucx_.is_over() && keys_.empty(); }

 private:
  friend struct retirement;

  endpoint_core(worker_core& worker, std::shared_ptr<worker_core> keep_alive, role side,
                endpoint_options&& options);
  void let_go() noexcept override { closing_.look(); }
  void retire() noexcept;
  /// Everything that changes how far it has come.
  void reach(endpoint_state next) noexcept {
    assert(may_become(state_, next));
    state_ = next;
  }
  void fail_operations(std::error_code why);
  void part();
  void log_established(bool same_host) const;
  void start_drop() noexcept;
  void drop_keys() noexcept;
  bool may_be_left() const noexcept;
  bool may_owe_answers() const noexcept;

  const process_stamp made_;
  worker_core& worker_;
  std::shared_ptr<worker_core> keep_alive_;
  const role role_;
  const bool plain_;
  const bool speaks_;
  const std::uint64_t number_;
  endpoint_state state_ = endpoint_state::connecting;
  bool losing_ = false;
  bool told_of_copies_ = false;
  std::error_code error_;
  std::string words_;
  std::optional<int> ucx_status_;  // by which UCX ended it
  std::string hardware_;           // its lanes of RDMA, as they were when it was established
  socket_address peer_;
  std::shared_ptr<client_account> account_;
  piece_sizes pieces_;
  reserved_share again_;
  unsigned answers_ = 0;
  std::vector<remote_key_owner*> keys_;
  ucx_endpoint ucx_;
  const std::unique_ptr<connection_messages> messages_;
  message_link& link_;  // the same, for those who send and receive
  endpoint_session session_;
  endpoint_observers observers_;
  endpoint_liveness liveness_;
  endpoint_closing closing_{*this};
  endpoint_control control_{*this};
  endpoint_quota quota_{*this};
  region_grants grants_;
  passed_files files_{*this};
  operation_book operations_{*this};
  std::unique_ptr<staged_transfers> staged_;
};

inline endpoint_core* operation::endpoint() const noexcept {
  return static_cast<endpoint_core*>(connection_);
}

}  // namespace ucx::detail
