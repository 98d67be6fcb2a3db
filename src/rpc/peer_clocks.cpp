#include "rpc/peer_clocks.hpp"

#include <chrono>
#include <mutex>
#include <new>
#include <optional>

#include "call/call_message.hpp"
#include "connection/endpoint_core.hpp"
#include "ucx/context.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

clock_stamp peer_clocks::came(hybrid_clock& clock, std::span<const std::byte> head,
                              endpoint_core& from) noexcept {
  if (const std::optional<clock_stamp> merged = clock.merge(clock_of(head))) return *merged;
  try {
    const std::lock_guard guard(from.worker().lock());
    if (from.worker().part<peer_clocks>().warned_.add(from.number())) {
      from.log(log_level::warning,
               "stamps of the peer are more than 500 ms ahead of this side's wall clock, and are "
               "not followed");
      static_assert(hybrid_clock::max_ahead == std::chrono::milliseconds(500));
    }
  } catch (const std::bad_alloc&) {  // it is counted all the same
  }
  return clock.now();
}

}  // namespace ucx::detail
