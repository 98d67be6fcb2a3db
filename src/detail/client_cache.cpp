#include "detail/client_cache.hpp"

#include <map>
#include <mutex>

#include "detail/client_core.hpp"
#include "detail/client_slot.hpp"
#include "detail/forked_child.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {
namespace {

struct cache {
  std::mutex mutex;
  std::map<url, std::shared_ptr<client_slot>> slots;
};

cache& the_cache() {
  static cache* const only = new cache;  // never destroyed: static objects may hold streams
  return *only;
}

/// Returns the server's slot, and drops those that nobody uses.
std::shared_ptr<client_slot> slot_of(const url& server) {
  cache& all = the_cache();
  const std::lock_guard guard(all.mutex);
  std::erase_if(all.slots, [&](const auto& each) {
    return each.second.use_count() == 1 && each.second->is_idle();
  });
  std::shared_ptr<client_slot>& found = all.slots[server];
  if (!found) found = std::make_shared<client_slot>();
  return found;
}

}  // namespace

std::shared_ptr<client_core> shared_client(const url& server, std::string& what,
                                           std::error_code& ec) {
  if (is_forked_child()) {
    what = to_string(server);
    ec = errc::forked_child;
    return nullptr;
  }
  return slot_of(server.server())
      ->get(
          [&server](std::string& why, std::error_code& failed) {
            return client_core::connect(server, client_options(), why, failed);
          },
          what, ec);
}

}  // namespace ucx::detail
