// The sessions of a server: one for each client, told of regions that are withdrawn.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "connection/channel.hpp"
#include "server/peer_audit.hpp"
#include "server/server_session.hpp"

namespace ucx::detail {

class catalogue;
class control_relay;
class endpoint_core;
class file_hasher;
class file_watcher;
class worker_core;

/// Every session lives on the first worker, `home`, whichever drives its connection: what comes by
/// another one is passed on (`control_relay`). Under the lock of `home`, where nothing else is
/// said. Work that is left behind there holds it weakly: it must not keep the server, which would
/// end on its own thread.
class server_sessions final : public control_server,
                              public std::enable_shared_from_this<server_sessions> {
 public:
  /// The objects named here outlive `end()`. No client is taken once the server is `closed`.
  server_sessions(worker_core& home, const catalogue& names, file_watcher& watcher,
                  file_hasher& hasher, std::size_t most_clients, const std::atomic<bool>& closed,
                  session_policy policy);
  server_sessions(const server_sessions&) = delete;
  server_sessions& operator=(const server_sessions&) = delete;

  /// Under the lock of the connection's worker.
  void accept(endpoint_core& peer) override;
  bool allows(const peer_identity& peer, std::uint64_t worker, std::uint64_t connection,
              access_right wanted, std::string_view name) const noexcept override;
  std::shared_ptr<client_account> admit(const peer_identity* who,
                                        const socket_address& from) override;
  void audit(const peer_facts& peer, const audit_event& event, const peer_facts* other) override;
  std::error_code expect(const ticket_secret& secret, const peer_facts& one,
                         const peer_facts& other, access_right needed,
                         std::string_view name) override;
  /// Has every session go by these rules; null: by none.
  void set_rules(std::shared_ptr<const rule_list> rules);
  /// Tells the clients that opened a region that it is withdrawn. From any thread.
  void tell_withdrawn(std::uint64_t region, std::string name) noexcept;
  /// Tells every client that the server leaves.
  void tell_leaving() noexcept;
  /// The server goes: no client is told of anything any more.
  void end() noexcept;

  const session_counters& counters() const noexcept { return counters_; }

 private:
  struct relayed_session {
    std::shared_ptr<control_relay> relay;
    std::unique_ptr<server_session> session;
  };
  void admit(const std::shared_ptr<control_relay>& from);
  template <class Told>
  void tell_all(Told&& told) noexcept;

  worker_core& home_;
  const catalogue& names_;
  file_watcher& watcher_;
  file_hasher& hasher_;
  const std::atomic<bool>& closed_;
  session_counters counters_;
  mutable std::mutex policy_mutex_;  // taken alone; `policy_` changes under the lock of `home`, too
  session_policy policy_;
  std::optional<peer_audit> audit_;
  std::unordered_map<endpoint_core*, std::unique_ptr<server_session>> sessions_;
  std::unordered_map<const control_relay*, relayed_session> relayed_;
  bool ended_ = false;
};

}  // namespace ucx::detail
