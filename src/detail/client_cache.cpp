#include "detail/client_cache.hpp"

#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "detail/client_core.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {
namespace {

/// One server's client. Who comes while another one connects gets that one's outcome: a server that
/// does not answer costs everybody one deadline, however many ask.
struct slot {
  std::mutex connecting;
  std::weak_ptr<client_core> client;
  std::error_code failure;  // of the last attempt
  std::string failure_text;
  std::atomic<std::uint64_t> ended{0};  // attempts
};

struct cache {
  std::mutex mutex;
  ::pid_t owner = ::getpid();
  std::map<url, std::shared_ptr<slot>> slots;
};

cache& the_cache() {
  static cache* const only = new cache;  // never destroyed: static objects may hold streams
  return *only;
}

/// Returns the server's slot, and drops those that nobody uses.
std::shared_ptr<slot> slot_of(const url& server) {
  cache& all = the_cache();
  const std::lock_guard guard(all.mutex);
  std::erase_if(all.slots, [&](const auto& each) {
    if (each.second.use_count() != 1) return false;
    const std::lock_guard idle(each.second->connecting);
    return each.second->client.expired();
  });
  std::shared_ptr<slot>& found = all.slots[server];
  if (!found) found = std::make_shared<slot>();
  return found;
}

/// Returns the slot's client unless it is lost. Nobody may have driven it for long: what the
/// network knows of it is looked at first.
std::shared_ptr<client_core> usable(const slot& found) {
  std::shared_ptr<client_core> client = found.client.lock();
  if (!client) return nullptr;
  client->worker().progress();
  return client->status() ? nullptr : client;
}

}  // namespace

std::shared_ptr<client_core> shared_client(const url& server, std::string& what,
                                           std::error_code& ec) {
  if (the_cache().owner != ::getpid()) {
    what =
        to_string(server) +
        ": this process was forked from one that had connections, and UCX does not survive that; "
        "open streams before fork(), or exec() a new program";
    ec = errc::not_supported;
    return nullptr;
  }
  const std::shared_ptr<slot> found = slot_of(server.server());
  const std::uint64_t before = found->ended.load(std::memory_order_acquire);
  const std::lock_guard guard(found->connecting);
  if (std::shared_ptr<client_core> client = usable(*found)) return client;
  if (found->ended.load(std::memory_order_relaxed) != before && found->failure) {
    ec = found->failure;
    what = found->failure_text;
    return nullptr;
  }
  std::shared_ptr<client_core> client = client_core::connect(server, client_options(), what, ec);
  found->client = client;
  found->failure = ec;
  found->failure_text = what;
  found->ended.fetch_add(1, std::memory_order_release);
  return client;
}

}  // namespace ucx::detail
