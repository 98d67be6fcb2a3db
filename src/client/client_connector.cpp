#include "client/client_connector.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/error_text.hpp"
#include "carrier/carrier_api.hpp"
#include "carrier/named_certificates.hpp"
#include "carrier/port_probe.hpp"
#include "carrier/token_store.hpp"
#include "client/client_core.hpp"
#include "connection/connector.hpp"
#include "os/network_device.hpp"
#include "os/resolver.hpp"
#include "os/socket_beside.hpp"
#include "os/socket_file.hpp"
#include "store/address_file.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// Of what is spoken at a port.
constexpr std::chrono::seconds longest_probe{1};

/// The scheme decides, and nothing falls back. Returns what contradicts it; empty where nothing
/// does.
std::string take_transport(const url& server, context_options& options) {
  const std::string meant = server.is_tls()      ? tls_transport
                            : server.is_socket() ? socket_transport
                                                 : "";
  if (meant.empty()) {
    if (!asks_for_sockets(options)) return {};
    return "the options name the transport \"" + options.transports.front() +
           "\", whose scheme is another one";
  }
  const bool has_both =
      options.transports == std::vector<std::string>{tls_transport, unix_transport};
  const bool fits = options.transports.empty() || options.transports == std::vector{meant} ||
                    (server.is_tls() && has_both);
  if (!fits) {
    return "the scheme of the URL means the transport \"" + meant +
           "\", and the options name others";
  }
  options.transports = {meant};
  return {};
}

/// Returns whether the server on loopback may be reached by a Unix socket. A token or a
/// certificate that was named is to be used.
bool may_go_beside(const url& server, const context_options& options) {
  const bool has_chosen = !options.token_file.empty() || token_of_environment() != nullptr ||
                          names_any(named_certificates(options.certificates)) ||
                          (!options.transports.empty() && !asks_for_unix_beside(options));
  return server.is_tls() && !has_chosen;
}

/// Adds what is spoken at the port instead, where UCX has found no server.
void explain(failure& why, const url& server, const socket_address& port) {
  const std::error_code code = why.code;
  if (code != errc::connection_refused && code != errc::connection_reset &&
      code != errc::unreachable) {
    return;
  }
  const spoken found = spoken_at(port, longest_probe);
  if (found == spoken::unknown) return;
  const bool by_tls = found == spoken::tls;
  const url meant = by_tls ? url::over_tls(server.host(), server.port())
                           : url::over_socket(server.host(), server.port());
  why = failure{by_tls ? errc::not_secure : errc::protocol_error,
                "the server there does not speak UCX; its URL is " + to_string(meant) +
                    (by_tls ? "; ucx:// needs `ucxio serve --ucx`" : "")};
}

endpoint connected(ucx::worker& driver, const socket_address& server, const std::string& towards) {
  return core_access::connect(driver, server, towards);
}

endpoint connected(ucx::worker& driver, const worker_address& server, const std::string&) {
  endpoint made(driver, server);
  made.wait_connected();
  return made;
}

}  // namespace

result<std::shared_ptr<client_core>> client_connector::connect(const url& server) const {
  if (server.empty()) return failure{errc::bad_url, "connecting to a URL that is empty"};
  auto made = server.address_file().empty() ? connect_by_host(server) : connect_by_file(server);
  if (!made) {
    return failure{made.why().code, to_string(server.server()) + ": " + made.why().text,
                   made.why().ucx_status};
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
                                                               const socket_address& server,
                                                               const std::string& towards) const {
  return connect_on(parent, server, towards);
}

result<std::shared_ptr<client_core>> client_connector::connect(context parent,
                                                               const worker_address& server) const {
  return connect_on(parent, server);
}

result<std::shared_ptr<client_core>> client_connector::connect_by_host(const url& server) const {
  client_options left = options_;
  const bool goes_beside = may_go_beside(server, left.context);
  if (const std::string wrong = take_transport(server, left.context); !wrong.empty()) {
    return failure{errc::bad_configuration, wrong};
  }
  const client_connector taken(left, ticket_);
  if (!server.socket_file().empty()) {
    if (const auto there = check_socket_file(server.socket_file()); !there) return there.why();
    auto parent = taken.make_context({.is_near = true});
    if (!parent) return parent.why();
    return taken.connect(*std::move(parent), socket_address("unix:" + server.socket_file()));
  }
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
      device_limit limit_of_devices;
      if (!server.is_socket()) limit_of_devices = devices_towards(address);
      limit_of_devices.towards = name_of_port({server.host(), server.port()});
      limit_of_devices.is_near = address.is_loopback();
      if (goes_beside && address.is_loopback()) {
        made =
            client_connector(left, ticket_).connect_beside(address, limit_of_devices.without_unix);
        if (made || limit_of_devices.without_unix.empty()) return made;
      }
      auto parent = taken.make_context(limit_of_devices);
      if (!parent) return parent.why();
      made = client_connector(left, ticket_)
                 .connect(*std::move(parent), address, limit_of_devices.towards);
      if (made) return made;
      if (!server.is_socket()) {
        failure explained = made.why();
        explain(explained, server, address);
        made = std::move(explained);
      }
    }
    // IPv6 is refused before anything is tried; another address may say more.
    if (!first.code || first.code == errc::not_supported) first = made.why();
  }
  return first;
}

/// Connects by the Unix socket of the server at a port of loopback. `why_not` gets the reason,
/// where it has none for this user: TLS is left then, which also says which server answers.
result<std::shared_ptr<client_core>> client_connector::connect_beside(const socket_address& port,
                                                                      std::string& why_not) const {
  const auto place = find_socket_beside(port);
  if (!place) {
    why_not = std::string(unix_resource) + ": " + place.why().text;
    return place.why();
  }
  client_options chosen = options_;
  chosen.context.transports = {socket_transport};
  chosen.context.peer_users.clear();  // the server is this user's, or none
  chosen.context.peer_groups.clear();
  const client_connector by_unix(chosen, ticket_);
  auto parent = by_unix.make_context({.is_near = true});
  if (!parent) return parent.why();
  auto made = by_unix.connect(*std::move(parent), socket_address("unix:" + *place));
  const bool is_none =
      !made && (made.why().code == errc::connection_refused || made.why().code == errc::not_secure);
  if (is_none) why_not = std::string(unix_resource) + ": " + made.why().text;
  return made;
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
result<std::shared_ptr<client_core>> client_connector::connect_on(
    context& parent, const Address& server, const std::string& towards) const {
  try {
    ucx::worker driver(parent, driving());
    worker_core& core = *core_access::core(driver);
    const clock::time_point deadline = core.deadline_after(core.options().connect_timeout);
    endpoint connection = connected(driver, server, towards);
    return client_core::greet(std::move(driver), std::move(connection), deadline, ticket_);
  } catch (const error& thrown) {
    return failure_of(thrown);
  }
}

/// Tells a client how it came to be, and how others like it do.
template <class Place>
void client_connector::tell_ways(client_core& made, const Place& server) const {
  const auto way = [this, &server](const client_options& chosen) {
    return [server, connector = client_connector(chosen, ticket_)] {
      return connector.connect(server);
    };
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
