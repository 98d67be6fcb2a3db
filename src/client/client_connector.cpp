#include "client/client_connector.hpp"

#include <chrono>
#include <cstddef>
#include <utility>

#include "base/deadline.hpp"
#include "base/error_text.hpp"
#include "client/client_core.hpp"
#include "os/network_device.hpp"
#include "os/resolver.hpp"
#include "store/address_file.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

result<std::shared_ptr<client_core>> client_connector::connect(const url& server) const {
  if (server.empty()) return failure{errc::bad_url, "connecting to a URL that is empty"};
  auto made = server.address_file().empty() ? connect_by_host(server) : connect_by_file(server);
  if (!made) {
    return failure{made.why().code, to_string(server.server()) + ": " + made.why().text};
  }
  (*made)->server().set_address(server.server());
  tell_ways(**made, server);
  return made;
}

result<std::shared_ptr<client_core>> client_connector::connect(const worker_address& server) const {
  auto parent = make_context({});
  if (!parent) return parent.why();
  auto made = connect(*std::move(parent), server);
  if (made) tell_ways(**made, server);
  return made;
}

result<std::shared_ptr<client_core>> client_connector::connect(context parent,
                                                               const socket_address& server) const {
  return connect_on(parent, server);
}

result<std::shared_ptr<client_core>> client_connector::connect(context parent,
                                                               const worker_address& server) const {
  return connect_on(parent, server);
}

result<std::shared_ptr<client_core>> client_connector::connect_by_host(const url& server) const {
  client_options left = options_;
  std::chrono::nanoseconds limit = options_.worker.connect_timeout;
  if (limit <= limit.zero()) limit = worker_options().connect_timeout;
  const auto begin = std::chrono::steady_clock::now();
  const auto found = look_up(server.host(), server.port(), limit);
  if (!found) return found.why();
  failure first;
  for (std::size_t tried = 0; tried < found->size(); ++tried) {
    // One deadline for all addresses of the host: each has its share of what is left.
    const std::chrono::nanoseconds used = std::chrono::steady_clock::now() - begin;
    left.worker.connect_timeout = share_of(limit - used, found->size() - tried);
    result<std::shared_ptr<client_core>> made = failure{errc::timed_out, "connecting"};
    if (left.worker.connect_timeout > limit.zero()) {
      const socket_address& address = (*found)[tried];
      auto parent = make_context(devices_towards(address));
      if (!parent) return parent.why();
      made = client_connector(left).connect(*std::move(parent), address);
      if (made) return made;
    }
    // IPv6 is refused before anything is tried; another address may say more.
    if (!first.code || first.code == errc::not_supported) first = made.why();
  }
  return first;
}

/// A server that was started again has written another address.
result<std::shared_ptr<client_core>> client_connector::connect_by_file(const url& server) const {
  const auto where = address_file::read(server.address_file());
  if (!where) return where.why();
  device_limit limit{{}, "a worker address may lead to any interface"};
  if (where->local) limit = devices_towards(socket_address("127.0.0.1:0"));
  auto parent = make_context(limit);
  if (!parent) return parent.why();
  return connect(*std::move(parent), where->address);
}

template <class Address>
result<std::shared_ptr<client_core>> client_connector::connect_on(context& parent,
                                                                  const Address& server) const {
  try {
    ucx::worker driver(parent, driving());
    worker_core& core = *core_access::core(driver);
    const clock::time_point deadline = core.deadline_after(core.options().connect_timeout);
    endpoint connection(driver, server);
    connection.wait_connected();  // by socket address it is
    return client_core::greet(std::move(driver), std::move(connection), deadline);
  } catch (const error& thrown) {
    return failure_of(thrown);
  }
}

/// Tells a client how it came to be, and how others like it do.
template <class Place>
void client_connector::tell_ways(client_core& made, const Place& server) const {
  const auto way = [&server](const client_options& chosen) {
    return [server, connector = client_connector(chosen)] { return connector.connect(server); };
  };
  client_options driven = options_;
  driven.worker.progress = progress_mode::sleeping_thread;
  made.further().set_ways(way(options_), way(driven));
}

/// Makes the client's context; `limit` counts unless the caller chose devices.
result<context> client_connector::make_context(const device_limit& limit) const {
  context_options chosen = options_.context;
  if (chosen.name.empty()) chosen.name = "ucxio client";
  return core_access::make_context(real_ucp(), chosen, limit);
}

/// Returns how the client's worker is driven.
worker_options client_connector::driving() const {
  worker_options chosen = options_.worker;
  if (chosen.thread_mode == thread_mode::automatic) chosen.thread_mode = thread_mode::multi;
  return chosen;
}

}  // namespace ucx::detail
