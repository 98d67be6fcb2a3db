// The connections of one command.
#pragma once

#include <map>
#include <mutex>

#include "client_settings.hpp"
#include "ucx/client.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

/// One client a server, made when it is asked for first. Safe from any thread.
class server_clients {
 public:
  /// Errors: failure with exit_code::usage.
  explicit server_clients(const client_settings& settings) : options_(settings.options()) {}

  /// Returns the client of the server of `any`, connected. Lifetime: this object's.
  /// Errors: those of client's constructor.
  client& of(const url& any);

  /// Ends all connections: whoever waits for an answer is told that it is closed.
  void close_all() noexcept;

 private:
  client_options options_;
  std::mutex mutex_;
  std::map<url, client> clients_;
};

}  // namespace ucx::tool
