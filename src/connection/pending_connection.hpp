// A peer's wish to connect, until it is accepted or rejected.
#pragma once

#include <memory>
#include <string_view>

#include "base/result.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

class endpoint_core;
class listener_core;
class worker_core;

/// UCX wants exactly one of accept and reject of every request, and the listener for the latter.
class pending_connection {
 public:
  pending_connection(std::shared_ptr<listener_core> listener, ucp_conn_request_h request) noexcept;
  ~pending_connection();
  pending_connection(const pending_connection&) = delete;
  pending_connection& operator=(const pending_connection&) = delete;

  /// Returns whose request it is; an empty address, if UCX does not know.
  static socket_address peer_of(ucp_api& api, ucp_conn_request_h request) noexcept;

  const socket_address& peer() const noexcept { return peer_; }
  const socket_address& local() const noexcept;
  /// Returns its listener's.
  worker_core& worker() const noexcept;
  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  void reject() noexcept;
  /// Rejects, and tells the peer why as soon as it has said hello.
  void refuse(errc why, std::string_view words);
  /// Makes an endpoint of it. REQUIRES: the listener's worker.
  result<std::shared_ptr<endpoint_core>> accept(worker_core& worker,
                                                std::shared_ptr<worker_core> keep_alive,
                                                endpoint_options options);
  /// Makes an endpoint by another worker of the context, which the listener does not hear of. Under
  /// the lock of that one alone.
  result<std::shared_ptr<endpoint_core>> accept_elsewhere(worker_core& worker);
  /// Writes down that no endpoint was made of it by `worker`.
  void tell_of_failure(worker_core& worker, const failure& why) const;

 private:
  result<std::shared_ptr<endpoint_core>> make(worker_core& worker,
                                              std::shared_ptr<worker_core> keep_alive,
                                              endpoint_options options);

  const process_stamp made_;
  std::shared_ptr<listener_core> listener_;
  ucp_conn_request_h request_;
  socket_address peer_;
};

}  // namespace ucx::detail
