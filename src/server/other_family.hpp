// The part of a server by plain UCX that serves clients of IPv6, beside those of IPv4.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/result.hpp"
#include "ucx/context.hpp"
#include "ucx/listener.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/worker.hpp"
#include "ucx/worker_options.hpp"

namespace ucx::detail {

class control_server;
class listener_core;
struct server_place;
class worker_core;

/// A context of UCX's speaks one family over TCP, so there is a second one. Its one worker has a
/// thread, and serves the regions of the first context: in place, by the system's copy, or by
/// message. UCX's keys are of the first context, and no client of this one is told them. Sessions
/// live on the server's first worker, as with further workers, so that names, limits, rules and
/// counts are of all clients. The listeners give all their clients to this worker.
class other_family {
 public:
  /// Makes the context and its worker, which serves `first`'s regions. Nothing listens yet.
  /// Errors: those of `server_place::make_context_of_six` and `addresses_of_six`, and of `worker`.
  static result<std::unique_ptr<other_family>> make(const server_place& place, const context& first,
                                                    worker_options options);
  other_family(const other_family&) = delete;
  other_family& operator=(const other_family&) = delete;

  /// From here on clients' sessions belong to `server`; null: there is none.
  void set_control_server(control_server* server) noexcept;
  /// Listens at each address, instead of what it did before. `port` 0 lets the system choose one,
  /// for all of them. Returns the port. An address that the system does not let have yet, or any
  /// more, is left out if there are others. `on_failure` is as in `server_options`. Throws as
  /// `listener` does, and nothing listens then.
  std::uint16_t listen(std::uint16_t port,
                       const std::function<void(const listener_failure&)>& on_failure);
  /// Takes no further client.
  void close() noexcept;
  /// Gives the addresses back. REQUIRES: closed.
  void stop() noexcept;

  /// Returns the address that a server is told to be at, which listens on `four` as well: the
  /// wildcard of IPv6 stands for both.
  socket_address told(const socket_address& four) const noexcept;
  ucx::worker& worker() noexcept { return worker_; }

 private:
  other_family(context made, const socket_address& asked, std::vector<socket_address> wanted,
               ucx::worker worker) noexcept;

  const context context_;
  const socket_address asked_;  // the wildcard, maybe
  const std::vector<socket_address> wanted_;
  ucx::worker worker_;
  std::vector<listener> listeners_;
  std::vector<std::shared_ptr<listener_core>> listening_;  // of those, also when they are closed
};

}  // namespace ucx::detail
