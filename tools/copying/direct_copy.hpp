// A copy from server to server, past this process.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "copying/copy_order.hpp"
#include "copying/copy_run.hpp"
#include "output/transfer_counters.hpp"
#include "process/client_settings.hpp"
#include "ucx/client.hpp"
#include "ucx/ticket.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// Has the agent of the target's server carry an order out; what it says and counts is as of
/// `copy_run`. Runs once. Lifetime: what is referred to, until it is gone.
class direct_copy {
 public:
  /// `places` are the order's, as they were written. Errors: failure with exit_code::usage, where
  /// one of them is no URL of a host.
  direct_copy(const std::vector<std::string>& places, const copy_order& order,
              const client_settings& settings, transfer_counters& counters, std::stop_token stop,
              copy_run::report tell);

  /// Errors: those of copy_run, of agent_link, and of who may not fetch.
  void run();
  bool left_something() const noexcept { return left_something_; }

 private:
  nlohmann::json lend_tickets(std::vector<client>& lenders, std::span<const std::byte> key) const;
  client lend(const ticket& made, const url& server) const;
  void check_stop() const;

  const std::vector<std::string>& places_;
  const copy_order& order_;
  const client_settings& settings_;
  transfer_counters& counters_;
  const std::stop_token stop_;
  copy_run::report tell_;
  bool left_something_ = false;
};

}  // namespace ucx::tool
