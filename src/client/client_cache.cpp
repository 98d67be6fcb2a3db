#include "client/client_cache.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "base/one_per_process.hpp"
#include "client/client_connector.hpp"
#include "client/client_core.hpp"
#include "client/client_slot.hpp"
#include "client/lingering_clients.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {
namespace {

struct cache {
  std::mutex mutex;
  std::map<url, std::shared_ptr<client_slot>> slots;
  lingering_clients lingering;
};

constinit one_per_process<cache> the_cache;

/// Registered by the first call that asks for a client. So it runs before what was made earlier is
/// destroyed, streams of static objects for one, and before UCX ends. Clients that are closed later
/// do not linger.
void end_at_exit() {
  if (cache* const made = the_cache.find()) made->lingering.end();
}

constinit std::atomic<bool> ends_at_exit{false};

/// Clients without users would have a child hold their connections.
void clear_before_fork() {
  if (cache* const made = the_cache.find()) made->lingering.clear();
}

[[maybe_unused]] const int forks_of_cache = ::pthread_atfork(clear_before_fork, nullptr, nullptr);

/// Returns the server's slot, and drops those without users.
std::shared_ptr<client_slot> slot_of(const url& server) {
  cache& all = the_cache.get();
  const std::lock_guard guard(all.mutex);
  std::erase_if(all.slots, [&](const auto& each) {
    return each.second.use_count() == 1 && each.second->is_idle();
  });
  std::shared_ptr<client_slot>& found = all.slots[server];
  if (!found) found = std::make_shared<client_slot>();
  return found;
}

/// Returns the client of `server` that lingers and is not lost; else connects. `lost` gets one that
/// is lost: its end may call handlers, and so waits until the slot is free.
result<std::shared_ptr<client_core>> take_or_connect(const url& server,
                                                     std::shared_ptr<client_core>& lost) {
  std::shared_ptr<client_core> found = the_cache.get().lingering.take(server);
  if (found) found->look();  // it had no round since
  if (found && found->status()) lost = std::move(found);
  if (!found) {
    auto made = client_connector(client_options()).connect(server);
    if (!made) return made;
    found = *std::move(made);
  }
  return the_cache.get().lingering.lend(server, std::move(found));
}

}  // namespace

result<std::shared_ptr<client_core>> shared_client(const url& server) {
  if (!ends_at_exit.exchange(true)) std::atexit(end_at_exit);
  if (const std::string& complaint = the_cache.get().lingering.complaint(); !complaint.empty()) {
    return failure{errc::bad_configuration, complaint};
  }
  const url where = server.server();
  std::shared_ptr<client_core> lost;
  return slot_of(where)->get([&] { return take_or_connect(where, lost); });
}

result<std::shared_ptr<client_core>> heard_client(const url& server) {
  auto found = shared_client(server);
  if (!found) return found;
  const auto heard = (*found)->hear();
  if (heard) return found;
  if (!(*found)->status()) return heard.why();  // it is not lost, and would be found again
  found = shared_client(server);
  if (!found) return found;
  if (const auto again = (*found)->hear(); !again) return again.why();
  return found;
}

void set_linger(std::chrono::nanoseconds longest) {
  the_cache.get().lingering.set_longest(longest);
}

}  // namespace ucx::detail
