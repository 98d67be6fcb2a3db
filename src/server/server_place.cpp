#include "server/server_place.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/logger.hpp"
#include "carrier/carrier_api.hpp"
#include "carrier/named_certificates.hpp"
#include "carrier/tls.hpp"
#include "carrier/token_store.hpp"
#include "os/device_name.hpp"
#include "os/ipv6_addresses.hpp"
#include "os/network_device.hpp"
#include "os/rdma_port.hpp"
#include "ucx/error.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"
#include "worker/context_core.hpp"
#include "worker/core_access.hpp"

namespace ucx::detail {
namespace {

/// Each takes a listener, and its thread.
constexpr std::size_t most_addresses_of_six = 64;

/// A URL has to be able to name it.
result<socket_address> unix_bind_address(const std::string& text) {
  try {
    const socket_address made(text);
    if (!made.host().empty()) ucx::url::over_unix(made.host());
    return made;
  } catch (const error& thrown) {
    return failure{errc::bad_address, "serving on \"" + text + "\": " + std::string(thrown.what())};
  }
}

/// Returns what of the options needs UCX; empty where nothing does.
std::string what_needs_ucx(const server_options& options) {
  const context_options& context = options.context;
  if (options.bind.empty()) return "an empty `bind`, which leaves only a worker address,";
  if (!context.devices.empty()) return "`context.devices`";
  if (!context.configuration.empty()) return "`context.configuration`";
  if (context.require_rdma) return "`context.require_rdma`";
  if (options.worker.terms.require_rdma) return "`worker.terms.require_rdma`";
  if (!options.worker.terms.transports.empty()) return "`worker.terms.transports`";
  if (context.configuration_precedence == precedence::environment) {
    return "`precedence::environment`";
  }
  for (const feature each : {feature::tag, feature::stream}) {
    if (includes(context.features, each)) return "`feature::" + to_string(each) + '`';
  }
  return {};
}

/// Takes the address, or two. Errors: bad_address (of two, they are not of both families, or have
/// two ports), host_not_found.
result<void> take_addresses(server_place& place, const std::string& text) {
  const std::size_t comma = text.starts_with("unix:") ? std::string::npos : text.find(',');
  auto first = server_place::address_of(text.substr(0, comma));
  if (!first) return first.why();
  place.local = *std::move(first);
  if (comma == std::string::npos) return {};
  auto second = server_place::address_of(text.substr(comma + 1));
  if (!second) return second.why();
  place.six = *std::move(second);
  if (place.local.is_v6()) std::swap(place.local, place.six);
  if (place.local.is_v4() && place.six.is_v6() && place.local.port() == place.six.port()) return {};
  return failure{errc::bad_address, "serving on \"" + text +
                                        "\": of two addresses one is of IPv4 and the other of "
                                        "IPv6, and they have one port"};
}

/// Returns how the options say which family UCX's TCP speaks; null where they do not.
const char* who_names_family(const context_options& options) {
  for (const char* const key : {"TCP_AF_PRIO", "AF_PRIO"}) {
    if (options.configuration.contains(key)) return key;
  }
  const bool inherits = options.configuration_precedence == precedence::environment;
  constexpr const char* variable = "UCX_TCP_AF_PRIO";
  return inherits && std::getenv(variable) != nullptr ? variable : nullptr;
}

/// Has both contexts of a server call it for one line at a time.
log_sink one_at_a_time(log_sink sink) {
  return [sink = std::move(sink), mutex = std::make_shared<std::mutex>()](log_level level,
                                                                          std::string_view line) {
    const std::lock_guard guard(*mutex);
    sink(level, line);
  };
}

/// Decides whether it serves both families.
result<void> take_families(server_place& place, const server_options& options) {
  const bool by_ucx = !asks_for_sockets(place.context);
  const char* const named = who_names_family(options.context);
  const bool everywhere = place.local.is_v6() && place.local.is_wildcard();
  if (!place.has_both_families() && by_ucx && everywhere && named == nullptr) {
    place.six = place.local;
    place.local = socket_address("0.0.0.0", place.six.port());
  }
  if (!place.has_both_families()) return {};
  const auto refuse = [&place](const std::string& why) {
    return failure{errc::bad_configuration, "serving on " + place.text() + ": " + why};
  };
  if (!by_ucx) {
    return refuse(
        "two addresses are for plain UCX, context.transports = {\"ucx\"} (--ucx). By sockets and "
        "by TLS a server at [::] serves both families");
  }
  if (named != nullptr) {
    return refuse(std::string(named) +
                  " names the family that UCX speaks over TCP, and a server at both has a context "
                  "of UCX's for each");
  }
  if (options.context.require_rdma || options.worker.terms.require_rdma) {
    return refuse("`require_rdma` is for one family: clients of IPv6 are served without RDMA keys");
  }
  place.context.configuration["TCP_AF_PRIO"] = "inet";
  if (log_sink& sink = place.context.log.sink) sink = one_at_a_time(std::move(sink));
  return {};
}

/// Chooses for options that name no transport.
result<void> take_default(server_place& place, const server_options& options) {
  if (place.local.is_unix()) {
    place.context.transports = {socket_transport};
    return {};
  }
  const std::string at = place.local.empty() ? "" : " on " + to_string(place.local);
  if (const std::string what = what_needs_ucx(options); !what.empty()) {
    return failure{errc::bad_configuration,
                   "serving" + at + ": " + what +
                       " needs UCX, and a server by default is by TLS. Name the transport: "
                       "context.transports = {\"ucx\"} (--ucx). Each process that can connect may "
                       "then read and write this whole one"};
  }
  if (options.insecure) {
    return failure{errc::bad_configuration,
                   "serving" + at +
                       ": `insecure` (--insecure) is for transports that ask for no token, and a "
                       "server by default is by TLS, also beyond loopback. Name the transport: "
                       "context.transports = {\"ucx\"} (--ucx) or {\"socket\"} (--socket)"};
  }
  place.context.transports = {tls_transport};
  if (place.local.is_loopback()) place.context.transports.push_back(unix_transport);
  place.is_by_default = true;
  return {};
}

bool is_near(const server_place& place) noexcept {
  return place.local.is_loopback() && (!place.has_both_families() || place.six.is_loopback());
}

result<void> check_security(const server_place& place) {
  const socket_address& local = place.local;
  // By TLS each peer has a token.
  if (asks_for_tls(place.context)) return {};
  if (place.insecure || is_near(place) || local.is_unix() || local.empty()) return {};
  if (asks_for_sockets(place.context)) {
    return failure{errc::not_secure,
                   "serving on " + to_string(local) +
                       ": over a socket, whoever can connect may do what is served. Bind to "
                       "127.0.0.1, or say `insecure` (--insecure) where the network is trusted"};
  }
  return failure{errc::not_secure,
                 "serving on " + place.text() +
                     ": over TCP, UCX lets whoever can connect read and write this process. Bind "
                     "to 127.0.0.1, or say `insecure` (--insecure) where the network is trusted"};
}

bool has_accepted_token() {
  const std::filesystem::path file = own_token_file();
  if (file.empty()) return false;
  const auto tokens = read_tokens(file);
  return tokens && std::any_of(tokens->entries.begin(), tokens->entries.end(),
                               [](const token_entry& each) { return each.is_accepted; });
}

constexpr const char* no_ipv6_here =
    "this machine has no address of IPv6. A server of IPv4 alone is at 0.0.0.0";

/// UCX before 1.14 does not speak it over loopback.
std::string ucx_without_ipv6() {
  return "UCX " + to_string(ucx_version()) + " speaks no IPv6 there";
}

bool has_tcp_at(const std::vector<std::string>& resources, const std::string& interface) {
  return std::any_of(resources.begin(), resources.end(), [&](const std::string& each) {
    return transport_of(each) == "tcp" && device_of(each) == interface;
  });
}

bool names_devices(const context_options& options) {
  return !options.devices.empty() || options.configuration.count("NET_DEVICES") != 0;
}

/// Clients of IPv6 are told no keys. Withdrawing memory ends its registrations with the first
/// context: those that hardware makes for messages of the second one would last.
device_limit devices_without_rdma(const socket_address& local,
                                  const std::vector<ipv6_address>& present) {
  constexpr const char* why = ", and clients of IPv6 are served without RDMA";
  if (!local.is_wildcard()) {
    device_limit limit = devices_of(local, {});
    limit.why += why;
    limit.is_without_rdma = true;
    return limit;
  }
  const char* const inherited = std::getenv("UCX_NET_DEVICES");
  device_limit limit{{}, to_string(local) + " is of each interface with IPv6" + why};
  limit.is_without_rdma = true;
  for (const ipv6_address& each : present) {
    const bool is_new = std::find(limit.devices.begin(), limit.devices.end(), each.interface) ==
                        limit.devices.end();
    if (!is_new || limit.devices.size() == most_devices) continue;
    if (inherited != nullptr && !allows_device(inherited, each.interface)) continue;
    limit.devices.push_back(each.interface);
  }
  return limit;
}

/// Removes those of RDMA hardware from the devices that the program named.
void leave_out_rdma(std::vector<std::string>& devices) {
  for (const rdma_port& each : rdma_ports()) {
    std::erase_if(devices, [&](const std::string& word) { return names_device(word, each.name); });
  }
}

/// Without TLS the system alone can say who a client is.
result<void> take_unix_alone(server_place& place, const failure& why) {
  const bool asks_for_port = !place.local.is_loopback() || place.local.port() != 0;
  if (asks_for_port && !place.local.is_unix()) {
    return failure{why.code, "serving on " + to_string(place.local) + ": " + why.text +
                                 ". Without a port it serves this user by a Unix socket; or name "
                                 "a token (UCXIO_TOKEN, --token-file), or another transport "
                                 "(--socket, --ucx)"};
  }
  if (!place.local.is_unix()) place.local = socket_address("unix:");
  place.context.transports = {socket_transport};
  return {};
}

/// The user's own clients have it. Where it can not be made, the file may have others, and the
/// system knows this user.
result<void> take_own_token(server_place& place) {
  const std::filesystem::path file = own_token_file();
  result<bool> made = failure{errc::no_such_name, "$HOME is not set"};
  if (!file.empty()) made = ensure_own_token(file);
  if (made) {
    place.has_made_token = *made;
    return {};
  }
  const failure why{made.why().code, "making the token of this user: " + made.why().text};
  if (why.code == errc::not_secure || why.code == errc::bad_configuration ||
      why.code == errc::busy) {
    return why;  // the user can mend that
  }
  place.complaint = why.text;
  if (has_accepted_token() || names_any(place.context.certificates)) return {};
  return take_unix_alone(place, why);
}

}  // namespace

result<server_place> server_place::make(const server_options& options) {
  server_place made;
  made.context = options.context;
  made.insecure = options.insecure;
  if (const auto taken = take_addresses(made, options.bind); !taken) return taken.why();
  if (made.context.transports.empty()) {
    if (const auto chosen = take_default(made, options); !chosen) return chosen.why();
  }
  if (const auto chosen = take_families(made, options); !chosen) return chosen.why();
  if (const auto secure = check_security(made); !secure) return secure.why();
  if (made.context.name.empty()) made.context.name = "ucxio server";
  if (asks_for_unix_beside(made.context) && !has_tls()) {
    const failure why{errc::not_supported,
                      "this ucxio was built without OpenSSL, so there is no TLS"};
    if (const auto taken = take_unix_alone(made, why); !taken) return taken.why();
    made.complaint = why.text;
    return made;
  }
  if (made.local.is_unix() && (asks_for_tls(made.context) || !asks_for_sockets(made.context))) {
    return failure{errc::bad_configuration,
                   "serving on a Unix socket: the options name other transports than \"socket\""};
  }
  const bool has_own_file = made.context.token_file.empty() && token_of_environment() == nullptr;
  const bool has_beside = asks_for_unix_beside(made.context) && made.local.is_loopback();
  if (has_own_file && (has_beside || (asks_for_tls(made.context) && has_accepted_token()))) {
    if (const auto token = take_own_token(made); !token) return token.why();
  }
  return made;
}

result<socket_address> server_place::address_of(const std::string& text) {
  if (text.empty()) return socket_address();
  if (text.starts_with("unix:")) return unix_bind_address(text);
  std::error_code ec;
  const socket_address numeric(text, ec);
  if (!ec) return numeric;
  const std::size_t colon = text.rfind(':');
  const socket_address with_port("0.0.0.0" + text.substr(std::min(colon, text.size())), ec);
  const bool half_an_address = text.find_first_of("[]") != std::string::npos;
  if (ec || colon == 0 || colon == std::string::npos || half_an_address) {
    return failure{errc::bad_address, "serving on \"" + text + "\", which is not host:port"};
  }
  const std::vector<socket_address> found =
      resolve(text.substr(0, colon), with_port.port(), std::chrono::seconds(5), ec);
  if (ec) return failure{ec, "serving on \"" + text + "\": looking up the host"};
  const auto v4 = std::find_if(found.begin(), found.end(), [](const auto& a) { return a.is_v4(); });
  return v4 != found.end() ? *v4 : found.front();
}

result<ucx::context> server_place::make_context() const {
  device_limit limit;
  if (asks_for_sockets(context)) {
    limit.is_of_server = true;  // the address decides which devices it has
    limit.is_near = local.is_unix() || is_near(*this);
  } else if (!local.empty() || !insecure) {
    limit = devices_of(local.empty() ? socket_address("127.0.0.1:0") : local);
  } else {
    limit.why = "it is reached through whatever its worker address names";
  }
  auto made = core_access::make_context(real_ucp(), context, limit);
  if (!made && is_by_default && !local.is_loopback()) {
    failure why = made.why();
    if (why.code == errc::permission_denied || why.code == errc::not_supported) {
      why.text =
          "serving on " + to_string(local) + ": " + why.text +
          ". Or name a transport that asks for no token, with `insecure` (--insecure), where "
          "the network is trusted: context.transports = {\"ucx\"} (--ucx) or {\"socket\"} "
          "(--socket)";
    }
    return why;
  }
  if (made && has_made_token) {
    core_access::core(*made)->log().write(
        log_level::info, "made the token \"own\" of this user in " + own_token_file().string());
  }
  if (made && !complaint.empty()) {
    core_access::core(*made)->log().write(log_level::error, complaint);
  }
  return made;
}

result<ucx::context> server_place::make_context_of_six() const {
  const std::string serving = "serving on " + to_string(six) + ": ";
  const auto present = ipv6_addresses();
  if (!present) return failure{present.why().code, serving + present.why().text};
  if (present->empty()) {
    return failure{errc::not_supported, serving + no_ipv6_here};
  }
  if (!is_shown_by_interface(six)) {
    return failure{errc::bad_address, serving + "no interface of this machine has the address"};
  }
  context_options chosen = context;
  chosen.configuration["TCP_AF_PRIO"] = "inet6";
  leave_out_rdma(chosen.devices);
  auto made = core_access::make_context(real_ucp(), chosen, devices_without_rdma(six, *present));
  // Its other options are those of the first context, which was made.
  if (!made && made.why().code == errc::bad_configuration) {
    return failure{errc::not_supported,
                   serving + ucx_without_ipv6() + " (" + made.why().text + ')'};
  }
  return made;
}

result<std::vector<socket_address>> server_place::addresses_of_six(const context_core& made) const {
  if (!six.is_wildcard()) return std::vector<socket_address>{six};
  const auto present = ipv6_addresses();
  if (!present) return present.why();
  const std::vector<std::string>& resources = made.resources();
  std::vector<socket_address> chosen;
  for (const ipv6_address& each : *present) {
    if (!has_tcp_at(resources, each.interface)) continue;
    chosen.push_back(each.address.with_port(six.port()));
  }
  const std::string serving = "serving on " + to_string(six) + ": ";
  if (chosen.empty()) return failure{errc::not_supported, serving + ucx_without_ipv6()};
  if (chosen.size() <= most_addresses_of_six) return chosen;
  return failure{errc::not_supported, serving + "this machine has " +
                                          std::to_string(chosen.size()) +
                                          " addresses of IPv6, and each would have a listener and "
                                          "its thread: name one, as 0.0.0.0:PORT,[ADDRESS]:PORT"};
}

std::string server_place::text() const {
  if (!has_both_families() || (six.is_wildcard() && local.is_wildcard())) {
    return to_string(has_both_families() ? six : local);
  }
  return to_string(local) + " and " + to_string(six);
}

bool server_place::is_local() const {
  if (names_devices(context)) return false;
  return local.empty() ? !insecure : is_near(*this);
}

}  // namespace ucx::detail
