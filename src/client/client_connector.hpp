// How clients are connected to a server.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/url.hpp"
#include "wire/ticket_secret.hpp"

namespace ucx::detail {

class client_core;
struct device_limit;

/// Finds a server by its host's name, the file with its address, or the address itself, and makes
/// clients of it as the options say. A value, which the clients that it made by URL or by address
/// have copies of, to connect again.
class client_connector {
 public:
  /// `ticket`: is shown once. So the clients can not connect again.
  explicit client_connector(client_options options,
                            const std::optional<ticket_secret>& ticket = std::nullopt)
      : options_(std::move(options)), ticket_(ticket) {}

  /// Each connects, and returns when the server has answered.
  result<std::shared_ptr<client_core>> connect(const url& server) const;
  result<std::shared_ptr<client_core>> connect(const worker_address& server) const;
  /// Likewise on `parent`, which counts instead of the options' context. By TLS the token is that
  /// for `towards`, "host:port"; where that is empty, that of the context.
  result<std::shared_ptr<client_core>> connect(context parent, const socket_address& server,
                                               const std::string& towards = {}) const;
  result<std::shared_ptr<client_core>> connect(context parent, const worker_address& server) const;

 private:
  result<std::shared_ptr<client_core>> connect_by_file(const url& server) const;
  result<std::shared_ptr<client_core>> connect_by_host(const url& server) const;
  result<std::shared_ptr<client_core>> connect_beside(const socket_address& port,
                                                      std::string& why_not) const;
  template <class Address>
  result<std::shared_ptr<client_core>> connect_on(context& parent, const Address& server,
                                                  const std::string& towards = {}) const;
  template <class Place>
  void tell_ways(client_core& made, const Place& server) const;
  result<context> make_context(const device_limit& limit) const;
  worker_options driving() const;

  client_options options_;
  std::optional<ticket_secret> ticket_;
};

}  // namespace ucx::detail
