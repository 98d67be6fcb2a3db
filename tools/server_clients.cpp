#include "server_clients.hpp"

#include <utility>
#include <vector>

namespace ucx::tool {

client& server_clients::of(const url& any) {
  const url server = any.server();
  const std::lock_guard guard(mutex_);
  const auto known = clients_.find(server);
  if (known != clients_.end()) return known->second;
  return clients_.emplace(server, client(server, options_)).first->second;
}

void server_clients::close_all() noexcept {
  const std::lock_guard guard(mutex_);
  for (auto& [server, each] : clients_) {
    client handle = each.share();  // the others' is not to be closed under their hands
    handle.close();
  }
}

}  // namespace ucx::tool
