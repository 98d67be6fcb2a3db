// The peers that connected to a worker: how they are let in, and who owns them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "ucp/ucp_api.hpp"
#include "wire/frame.hpp"

namespace ucx::detail {

class address_peers;
class connection_table;
class endpoint_core;
class worker_core;

/// Answers the hello of peers that know the worker's address, or came by a listener. Owns the
/// connections that have no other holder, until the peers leave. A part of the connection table,
/// under the worker's lock.
class served_peers {
 public:
  served_peers(worker_core& worker, connection_table& table);
  ~served_peers();
  served_peers(const served_peers&) = delete;
  served_peers& operator=(const served_peers&) = delete;

  /// A peer says hello: inside UCX's callback, so the answer is deferred.
  void hello(const frame& said, std::span<const std::byte> payload, ucp_ep_h reply_endpoint);
  /// Takes a connection that has no other holder, until the peer leaves.
  void serve(std::shared_ptr<endpoint_core> peer);
  bool has(const std::shared_ptr<endpoint_core>& peer) const noexcept;
  /// Tells of those that connect by the worker's address.
  address_peers& by_address() noexcept { return *by_address_; }
  /// Lets go of those that are gone.
  void reap();
  /// Drops all of them and answers no peer any more: the worker ends.
  void close() noexcept;

 private:
  void answer_hello(const frame& said, const std::vector<std::byte>& payload,
                    ucp_ep_h reply_endpoint);
  endpoint_core* connect_back(std::span<const std::byte> address);

  worker_core& worker_;
  connection_table& table_;
  const std::shared_ptr<address_peers> by_address_;
  std::vector<std::shared_ptr<endpoint_core>> peers_;
  bool closed_ = false;
};

}  // namespace ucx::detail
