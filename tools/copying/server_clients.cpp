#include "copying/server_clients.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "agent/agent_links.hpp"
#include "output/exit_code.hpp"
#include "process/bounded_connect.hpp"
#include "ucx/error.hpp"

namespace ucx::tool {
namespace {

/// Digests that are asked for at a time. A server lets a client ask 16. Some room is left for those
/// that were given up, and that it still reads for.
constexpr unsigned most_digests = 12;

}  // namespace

server_clients::server_clients(const client_settings& settings,
                               std::optional<server_tickets> tickets)
    : settings_(settings),
      tickets_(std::move(tickets)),
      patience_(settings.options().worker.operation_timeout),
      agents_(std::make_unique<agent_links>(settings)) {}

server_clients::~server_clients() = default;

client server_clients::connect(const url& server) const {
  if (!tickets_) return settings_.connect(server);
  const auto shown = tickets_->find(server);
  if (shown == tickets_->end()) {
    throw failure(exit_code::permission,
                  fmt::format("{}: the agent has no ticket for this server from its client, and no "
                              "rights of its own",
                              to_string(server)));
  }
  return bounded_connect(settings_, server, settings_.options(),
                         [&](const url& at, const client_options& chosen) {
                           return shown->second.connect(at, chosen);
                         });
}

client& server_clients::of(const url& any) {
  const url server = any.server();
  const std::lock_guard guard(mutex_);
  const auto known = clients_.find(server);
  if (known != clients_.end()) return known->second;
  return clients_.emplace(server, connect(server)).first->second;
}

std::vector<content_digest> server_clients::digest(const url& any, remote_region& file,
                                                   const digest_range& wanted,
                                                   std::error_code& ec) {
  client& server = of(any);
  std::unique_lock guard(mutex_);
  unsigned& asking = asking_[any.server()];
  answered_.wait(guard, [&] { return asking < most_digests; });
  ++asking;
  guard.unlock();
  const auto until = std::chrono::steady_clock::now() + patience_;
  std::vector<content_digest> all = server.digest(file, wanted, {}, ec);
  // Others ask it, too.
  while (ec == errc::busy && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    all = server.digest(file, wanted, {}, ec);
  }
  guard.lock();
  --asking;
  answered_.notify_all();
  return all;
}

void server_clients::close_all() noexcept {
  agents_->end();
  const std::lock_guard guard(mutex_);
  for (auto& [server, each] : clients_) {
    client handle = each.share();  // the others' is not to be closed under their hands
    handle.close();
  }
}

}  // namespace ucx::tool
