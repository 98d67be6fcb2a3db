// The conversations of one command with agents.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "agent/agent_link.hpp"
#include "process/client_settings.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// Some for each server, made when they are asked for. Safe from any thread.
class agent_links {
 public:
  explicit agent_links(client_settings settings) : settings_(settings) {}

  /// Returns one with the agent of the server of `any`: that one which the fewest have.
  /// Errors: those of agent_link.
  std::shared_ptr<agent_link> of(const url& any);

  /// Ends them, and fails the calls that wait for an answer.
  void end() noexcept { end_.request_stop(); }

 private:
  static constexpr std::size_t most_of_one_server = 4;

  struct server_links {
    std::vector<std::shared_ptr<agent_link>> all = {};
    bool may_grow = true;  // the agent had time for the last one
  };

  const client_settings settings_;
  std::stop_source end_;
  std::mutex mutex_;
  std::map<url, server_links> servers_;
};

}  // namespace ucx::tool
