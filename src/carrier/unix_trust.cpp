#include "carrier/unix_trust.hpp"

#include <new>
#include <string>

namespace ucx::detail {

std::optional<unix_peer> unix_trust::peer_of(int socket, const char* what_others_get) noexcept {
  try {
    std::optional<unix_peer> peer = unix_peer::of(socket);
    if (peer && trusted_.trusts(*peer)) return peer;
    const std::lock_guard guard(mutex_);
    if (log_ != nullptr && told_.add(peer ? peer->user : static_cast<::uid_t>(-1))) {
      log_->write(log_level::warning, std::string(what_others_get) + ": " +
                                          (peer ? peer->words() : "a user that is not known"));
    }
  } catch (const std::bad_alloc&) {  // a user that can not be looked at is not trusted
  }
  return std::nullopt;
}

}  // namespace ucx::detail
