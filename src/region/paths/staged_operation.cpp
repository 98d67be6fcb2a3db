#include "region/paths/staged_operation.hpp"

#include <utility>

#include "connection/endpoint_core.hpp"
#include "connection/write_tracker.hpp"
#include "cuda/device_pointer.hpp"
#include "region/paths/peer_region.hpp"
#include "ucp/status.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

rma_operation* staged_operation::read(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                                      std::uint64_t offset, std::span<std::byte> into,
                                      std::shared_ptr<const void> keeper,
                                      clock::time_point deadline, std::error_code& ec) {
  region->endpoint().make_staged();
  staged_operation* const made = region->endpoint().worker().pool_of<staged_operation>().take();
  made->keeps_ = region;
  made->into_ = into;
  made->lands_in_ = std::move(keeper);
  made->begin(std::move(region), nullptr, offset, into.size(), deadline);
  return made->join(key, offset, ec);
}

rma_operation* staged_operation::write(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                                       std::shared_ptr<write_tracker> tracker, std::uint64_t offset,
                                       std::span<const std::byte> from, clock::time_point deadline,
                                       std::error_code& ec) {
  region->endpoint().make_staged();
  staged_operation* const made = region->endpoint().worker().pool_of<staged_operation>().take();
  made->keeps_ = region;
  made->from_ = from;
  made->begin(std::move(region), std::move(tracker), offset, from.size(), deadline);
  return made->join(key, offset, ec);
}

rma_operation* staged_operation::join(ucp_rkey_h key, std::uint64_t offset, std::error_code& ec) {
  address_ = region().descriptor().address + offset;
  key_of_turn_ = key;
  endpoint()->staged()->add(*this);
  return is_posting() ? posted(ec) : this;
}

/// With a lost connection the first pieces are in flight, and a later one fails within its call.
void staged_operation::staged_ended(ucs_status_t status) noexcept {
  const bool is_alone = status == UCS_OK || fate_of(status) == transfer_fate::alone;
  is_alone ? transfer_ended(status) : transfer_lost(status);
}

void staged_operation::give_up(errc why) noexcept {
  if (is_unclear()) return rma_operation::give_up(why);
  leave(make_error_code(why));
}

void staged_operation::connection_failed(std::error_code why) noexcept {
  if (is_unclear()) return rma_operation::connection_failed(why);
  leave(why);
}

/// UCX has nothing of the caller's, whatever is in flight.
void staged_operation::leave(std::error_code why) noexcept {
  if (done()) return;
  endpoint()->staged()->leave(*this);
  abandon(why);
}

bool staged_operation::rebind(std::span<std::byte> into) noexcept {
  return !done() && is_on_host(into) && move_read(into);
}

void staged_operation::recycle() noexcept {
  keeps_.reset();
  lands_in_.reset();
  into_ = {};
  from_ = {};
  forget();
  worker().pool_of<staged_operation>().give_back(this);
}

}  // namespace ucx::detail
