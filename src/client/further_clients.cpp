#include "client/further_clients.hpp"

#include <system_error>
#include <utility>

#include "client/client_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

void further_clients::set_ways(client_slot::connector again, client_slot::connector beside) {
  again_ = std::move(again);
  beside_ = std::move(beside);
}

result<std::shared_ptr<client_core>> further_clients::lane(std::size_t number) {
  if (closed_ || !beside_ || made_.is_inherited()) {
    const errc why = closed_                ? errc::closed
                     : made_.is_inherited() ? errc::forked_child
                                            : errc::not_supported;
    return failure{why, "connecting once more to " + server_.place()};
  }
  client_slot* slot = nullptr;
  {
    const std::lock_guard guard(lanes_mutex_);
    slot = &lanes_[number];
  }
  return slot->get(beside_);
}

result<std::shared_ptr<client_core>> further_clients::successor(std::shared_ptr<client_core> lost) {
  lost->look();  // it may have had no round for long
  further_clients& its = lost->further();
  const std::error_code why = its.closed_ ? make_error_code(errc::closed) : lost->status();
  if (!why) return lost;
  if (why == errc::closed || why == errc::forked_child || !its.again_) {
    return failure{why, "connecting again to " + its.server_.place()};
  }
  return its.successor_.get(its.again_);
}

}  // namespace ucx::detail
