#include "detail/client_cache.hpp"

#include <unistd.h>

#include <map>
#include <mutex>

#include "detail/client_core.hpp"
#include "detail/client_slot.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/url.hpp"

namespace ucx::detail {
namespace {

struct cache {
  std::mutex mutex;
  ::pid_t owner = ::getpid();
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
  if (the_cache().owner != ::getpid()) {
    what =
        to_string(server) +
        ": this process was forked from one that had connections, and UCX does not survive that; "
        "open streams before fork(), or exec() a new program";
    ec = errc::not_supported;
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
