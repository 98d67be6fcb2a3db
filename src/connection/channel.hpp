// How control messages travel: the protocol knows nothing else of the network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "base/clock.hpp"
#include "ucx/access.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/audit.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/error.hpp"
#include "ucx/peer_identity.hpp"
#include "ucx/socket_address.hpp"
#include "wire/ticket_secret.hpp"

namespace ucx::detail {

class client_account;
class endpoint_core;

/// How a peer may reach memory, other than by messages.
struct peer_reach {
  /// It is of this host, as it says and as far as its address tells, and may use memory in place.
  bool shares_host = false;
  bool has_rma = false;      ///< UCX may offer it RMA, by hardware.
  bool takes_files = false;  ///< The connection carries files of memory, which it maps.
  /// UCX's keys of the regions are of the connection's context. Those of another one mean nothing.
  bool takes_keys = true;
};

/// The peer, as this side knows it. The identity is null where nothing is known of it.
struct peer_facts {
  std::shared_ptr<const peer_identity> identity = nullptr;
  std::string address = {};                           ///< Empty for a connection by worker address.
  std::uint64_t id = 0;                               ///< Of the connection at its worker.
  std::shared_ptr<client_account> account = nullptr;  ///< May be null.
  std::uint64_t worker = 0;                           ///< The identity of that worker.
};

/// Sends messages for a side of the protocol, and grants regions to the peer. Under its worker's
/// lock.
class channel {
 public:
  virtual ~channel() = default;
  /// Sends a message, soon; the bytes are copied. Whatever goes wrong ends the channel.
  virtual void send(std::span<const std::byte> message) = 0;
  /// Returns how long a message may be.
  virtual std::size_t longest() const noexcept = 0;
  /// Returns how many bytes of messages the peer has not taken yet.
  virtual std::size_t unsent() const noexcept = 0;
  /// Has `work` done in a later round, when it is the peer's turn, unless the channel ends before.
  virtual void take_turn(move_only_handler<> work) = 0;
  /// Ends the channel, soon, because the peer did something that is not allowed.
  virtual void blame(std::error_code why, const std::string& words) = 0;

  virtual peer_reach reach() const noexcept = 0;
  virtual peer_facts facts() const = 0;
  /// Returns the time, as the connection's worker has it.
  virtual clock::time_point now() const noexcept { return clock::now(); }
  /// Lets the connection reach a region, before anything that is sent behind it arrives.
  virtual void grant(std::uint64_t region, access rights) = 0;
  /// Passes the region's file likewise, where it has one and the connection carries files.
  virtual void pass_file(std::uint64_t /*region*/, access /*rights*/) {}
  /// Ends the connection's rights to the region, or to all regions, soon.
  virtual void end_grant(std::uint64_t region) noexcept = 0;
  virtual void end_grants() noexcept = 0;
  /// As `end_grant()`; accesses are told that the region was revoked.
  virtual void revoke_grant(std::uint64_t region) noexcept { end_grant(region); }
};

/// Receives messages for a side of the protocol. Under its worker's lock, never inside UCX.
class channel_receiver {
 public:
  virtual ~channel_receiver() = default;
  virtual void received(std::span<const std::byte> message) = 0;
  /// The last call: nothing can be sent or will be received any more.
  virtual void ended(std::error_code why) noexcept = 0;
};

/// Takes the control messages of peers that connected by themselves.
class control_server {
 public:
  virtual ~control_server() = default;
  /// Sets the receiver of `peer`, or refuses and sets none.
  virtual void accept(endpoint_core& peer) = 0;
  /// Returns whether the server's rules, if it has some, allow that to a peer, and to each client
  /// for which its connection acts. The numbers are those of `peer_facts`. Safe from any thread.
  virtual bool allows(const peer_identity&, std::uint64_t /*worker*/, std::uint64_t /*connection*/,
                      access_right, std::string_view) const noexcept {
    return true;
  }
  /// Counts a connection that has come, from a peer without identity (null) or without address
  /// (empty). Returns null where there are no limits. Safe from any thread.
  virtual std::shared_ptr<client_account> admit(const peer_identity*, const socket_address&) {
    return nullptr;
  }
  /// Writes a line about a peer, and about a second one where it is not null, to the server's audit
  /// if it has one. Safe from any thread.
  virtual void audit(const peer_facts&, const audit_event&, const peer_facts* /*other*/) {}
  /// Takes a ticket that stands for two clients, while both have a right for the name. Safe from
  /// any thread. Errors: closed_by_peer (one of them is not there), busy, already_exists.
  virtual std::error_code expect(const ticket_secret&, const peer_facts&, const peer_facts&,
                                 access_right, std::string_view) {
    return errc::not_supported;
  }
};

}  // namespace ucx::detail
