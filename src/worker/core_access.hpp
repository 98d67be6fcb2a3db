// How the library's own parts, and its tests, look inside the public handles.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/listener.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/message.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/scheduled_call.hpp"
#include "ucx/server.hpp"
#include "ucx/worker.hpp"
#include "worker/operation.hpp"

namespace ucx {
class progress_loop;
}

namespace ucx::detail {

class ucp_api;
struct device_limit;

struct core_access {
  /// Makes a context whose every UCX call goes to `api`, which has to outlive all that is made of
  /// it.
  static context make_context(ucp_api& api, const context_options& options, std::error_code& ec);

  /// Makes one that may use the devices of `limit`, unless the options name some.
  static result<context> make_context(ucp_api& api, const context_options& options,
                                      const device_limit& limit);

  static context adopt_context(ucp_api& api, ucp_context* made,
                               const adopted_context_options& options, std::error_code& ec);

  template <class Handle>
  static auto& core(Handle& handle) noexcept {
    return handle.core_;
  }
  static request make_request(operation* owned) noexcept {
    owned->keep_worker();
    return request(owned);
  }
  static scheduled_call make_scheduled_call(std::shared_ptr<scheduled> call) noexcept {
    return scheduled_call(std::move(call));
  }
  static connection_request make_connection_request(
      std::unique_ptr<pending_connection> pending) noexcept;
  template <class Handle>
  static auto& pending(Handle& handle) noexcept {
    return handle.pending_;
  }
  template <class Rules>
  static const auto& lines(const Rules& rules) noexcept {
    return rules.lines_;
  }
  static const auto& place(const peer_address& peer) noexcept { return peer.place_; }
  /// Makes another handle of a context.
  static context make_context(std::shared_ptr<context_core> core) noexcept {
    return context(std::move(core));
  }
  /// Makes a server on `parent`; the options of the context do not count.
  static server make_server(context parent, const server_options& options, std::error_code& ec);
  /// Makes clients on `parent`; of the options `worker` counts.
  static client make_client(context parent, const socket_address& server,
                            const client_options& options, std::error_code& ec);
  static client make_client(context parent, const worker_address& server,
                            const client_options& options, std::error_code& ec);
  /// Makes another handle of a client.
  static client make_client(std::shared_ptr<client_core> core) noexcept {
    client made;
    made.core_ = std::move(core);
    return made;
  }
  static message make_message(std::shared_ptr<worker_core> worker,
                              arrived_message& arrived) noexcept {
    return message(std::move(worker), arrived);
  }
  /// Connects as the constructor does. By TLS the token is that for `towards`.
  static endpoint connect(const worker& parent, const socket_address& peer,
                          const std::string& towards);
  /// Makes another handle of a connection, which leaves the first one's handlers alone.
  static endpoint make_endpoint(std::shared_ptr<endpoint_core> core) noexcept {
    endpoint made;
    made.core_ = std::move(core);
    made.borrowed_ = true;
    return made;
  }
  /// Held by a handle of a connection that the worker serves: such a connection does not keep the
  /// worker.
  struct served {
    std::shared_ptr<worker_core> worker;
    std::shared_ptr<endpoint_core> core;
  };
  /// Makes another handle of a connection that the worker serves. `both` is made before, which
  /// takes memory.
  static endpoint make_served_endpoint(std::shared_ptr<served> both,
                                       std::shared_ptr<worker_core> worker,
                                       std::shared_ptr<endpoint_core> core) noexcept {
    if (!worker || !core) return make_endpoint(nullptr);
    endpoint_core* const shown = core.get();
    *both = {std::move(worker), std::move(core)};
    return make_endpoint({std::move(both), shown});
  }
  /// Returns how often a loop has looked at its workers.
  static std::uint64_t rounds(const progress_loop& loop) noexcept;
  /// Returns which of the writes through the handle are not confirmed.
  static const auto& tracker(const remote_region& region) noexcept { return region.tracker_; }
  static operation* get(const request& handle) noexcept { return handle.operation_; }
  /// Takes the handle's reference; null of an empty request.
  static operation* take(request handle) noexcept {
    return std::exchange(handle.operation_, nullptr);
  }
  /// Makes another handle of a worker.
  /// A further handle, of the library's.
  static worker make_worker(std::shared_ptr<worker_core> core) noexcept {
    return worker(std::move(core), true);
  }
};

}  // namespace ucx::detail
