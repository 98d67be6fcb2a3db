#include "ucx/ticket.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <utility>

#include "base/result.hpp"
#include "carrier/tls_keys.hpp"
#include "client/client_connector.hpp"
#include "client/client_core.hpp"
#include "client/lent_ticket.hpp"
#include "connection/channel.hpp"
#include "connection/endpoint_channel.hpp"
#include "connection/endpoint_core.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

namespace ucx {
namespace {

using detail::core_access;
using detail::failure;
using detail::result;

constexpr std::string_view ticket_digits = "0123456789abcdef";
constexpr std::string_view bound_label = "ucxio ticket of a conversation";
constexpr std::size_t shortest_bond = 16;

detail::peer_facts facts_of_holder(const std::shared_ptr<detail::endpoint_core>& peer) {
  const std::lock_guard guard(peer->worker().lock());
  return detail::endpoint_channel(*peer).facts();
}

result<void> expect_at_server(const detail::ticket_secret& secret, const endpoint& one,
                              const endpoint& other, access_right needed, std::string_view name) {
  const std::string doing = "taking a ticket for two clients";
  const auto& first = core_access::core(one);
  const auto& second = core_access::core(other);
  if (!first || !second) return failure{errc::closed, doing};
  if (first->is_inherited() || second->is_inherited()) return failure{errc::forked_child, doing};
  const detail::peer_facts of_second = facts_of_holder(second);
  // Under the lock the server does not end.
  const std::lock_guard guard(first->worker().lock());
  detail::control_server* const server = first->worker().control_server();
  if (server == nullptr) return failure{errc::not_supported, doing};
  const detail::peer_facts of_first = detail::endpoint_channel(*first).facts();
  const std::error_code refused = server->expect(secret, of_first, of_second, needed, name);
  if (refused) return failure{refused, doing};
  return {};
}

}  // namespace

ticket::ticket() {
  std::size_t drawn = 0;
  while (drawn < secret_.size()) {
    const ::ssize_t came = ::getrandom(secret_.data() + drawn, secret_.size() - drawn, 0);
    if (came < 0 && errno != EINTR) throw error(errc::io_error, "drawing a ticket");
    if (came > 0) drawn += static_cast<std::size_t>(came);
  }
}

ticket::ticket(std::span<const std::byte, size> secret) noexcept {
  std::copy(secret.begin(), secret.end(), secret_.begin());
}

ticket ticket::parse(std::string_view text, std::error_code& ec) {
  std::array<std::byte, size> secret = {};
  const bool is_one = text.size() == 2 * size && text.find_first_not_of(ticket_digits) == text.npos;
  for (std::size_t i = 0; is_one && i < text.size(); ++i) {
    const auto half = static_cast<std::byte>(ticket_digits.find(text[i]));
    secret[i / 2] = secret[i / 2] << 4U | half;
  }
  const result<void> outcome =
      is_one ? result<void>() : failure{errc::invalid_argument, "reading a ticket"};
  outcome.or_end(ec);
  return ticket(secret);
}

std::string ticket::text() const {
  std::string made;
  for (const std::byte each : secret_) {
    made += ticket_digits[std::to_integer<unsigned>(each >> 4U)];
    made += ticket_digits[std::to_integer<unsigned>(each & std::byte{15})];
  }
  return made;
}

ticket ticket::bound_to(std::span<const std::byte> key, std::error_code& ec) const {
  const std::string doing = "binding a ticket to a conversation";
  std::string label(bound_label);
  for (const std::byte each : secret_) label += static_cast<char>(each);
  std::array<std::byte, size> made = {};
  result<void> outcome;
  if (key.size() < shortest_bond) {
    outcome = failure{errc::invalid_argument, doing + ": it has no key"};
  } else if (!detail::derive(key, label, made)) {
    outcome = failure{errc::not_supported, doing + ": OpenSSL, which derives it, is not there"};
    made = {};
  }
  outcome.or_end(ec);
  return ticket(made);
}

void ticket::lend(client& by, const io_options& options, std::error_code& ec) const {
  const std::shared_ptr<detail::client_core> core = core_access::core(by);
  result<void> outcome = failure{errc::closed, "lending a ticket by a client that is not there"};
  if (core) outcome = detail::lend_ticket(core->questions(), secret_, options);
  outcome.or_end(ec);
}

client ticket::connect(const url& server, const client_options& options,
                       std::error_code& ec) const {
  const detail::client_connector by(options, secret_);
  return core_access::make_client(by.connect(server).or_end(ec));
}

void ticket::expect(const endpoint& one, const endpoint& other, access_right needed,
                    std::string_view name, std::error_code& ec) const {
  expect_at_server(secret_, one, other, needed, name).or_end(ec);
}

}  // namespace ucx
