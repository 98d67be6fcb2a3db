// The connections of one command.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <vector>

#include "process/client_settings.hpp"
#include "ucx/client.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/ticket.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

class agent_links;

/// The tickets by which an agent acts for its client, each at one server.
using server_tickets = std::map<url, ticket>;

/// One client a server, made when it is asked for first. Safe from any thread.
class server_clients {
 public:
  /// `tickets`: of an agent that acts by tickets only. Each counts for one
  /// connection. Errors: failure with exit_code::usage.
  explicit server_clients(const client_settings& settings,
                          std::optional<server_tickets> tickets = std::nullopt);
  ~server_clients();

  /// Returns the client of the server of `any`, connected. Lifetime: this object's.
  /// Errors: those of client_settings::connect; failure with exit_code::permission, where an agent
  /// has no ticket for it.
  client& of(const url& any);

  /// Calls `client::digest` of the client of `any`, and waits where that asks too much already.
  /// Errors: the same; busy, where the server is so for the time-out.
  std::vector<content_digest> digest(const url& any, remote_region& file,
                                     const digest_range& wanted, std::error_code& ec);

  /// Returns the conversations with servers' agents. Lifetime: this object's.
  agent_links& agents() noexcept { return *agents_; }

  /// Ends all connections: calls that wait for an answer are told that it is closed.
  void close_all() noexcept;

 private:
  client connect(const url& server) const;

  const client_settings settings_;
  const std::optional<server_tickets> tickets_;
  const std::chrono::nanoseconds patience_;
  const std::unique_ptr<agent_links> agents_;
  std::mutex mutex_;
  std::map<url, client> clients_;
  std::map<url, unsigned> asking_;  // how many digests of each are not answered
  std::condition_variable answered_;
};

}  // namespace ucx::tool
