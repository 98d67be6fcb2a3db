#include "message/rma_read.hpp"

#include <algorithm>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "ucp/packed_key.hpp"
#include "ucp/registration_cache.hpp"
#include "ucp/status.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

bool rma_read::begin(endpoint_core& from, user& told, const rma_offer& offer,
                     std::span<std::byte> into) {
  if (!is_key_of_domains(offer.key)) return false;
  const padded_key packed(offer.key);
  from.add(*this);  // first: it may throw
  ucp_rkey_h key = nullptr;
  if (from.worker().api().ep_rkey_unpack(from.handle(), packed.data(), &key) != UCS_OK) {
    from.remove(*this);
    return false;
  }
  from_ = &from;
  user_ = &told;
  key_ = key;
  address_ = offer.address;
  into_ = into;
  posted_ = 0;
  fetched_ = 0;
  stopped_ = false;
  return true;
}

void rma_read::go() noexcept {
  for (part& each : parts_) {
    while (each.size == 0 && !stopped_ && posted_ < into_.size()) post(each);
  }
}

void rma_read::post(part& next) noexcept {
  next.owner = this;
  next.size = std::min(part_size, into_.size() - posted_);
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &rma_read::on_ended;
  params.user_data = &next;
  ++in_flight_;
  from_->transfer_started();
  ucs_status_ptr_t const posted = from_->worker().api().get_nbx(
      from_->handle(), into_.data() + posted_, next.size, address_ + posted_, key_, &params);
  posted_ += next.size;
  if (!UCS_PTR_IS_PTR(posted)) ended(next, UCS_PTR_RAW_STATUS(posted));
}

void rma_read::ended(part& done, ucs_status_t status) noexcept {
  const std::size_t size = std::exchange(done.size, 0);
  --in_flight_;
  from_->transfer_ended();
  if (status == UCS_OK) {
    fetched_ += size;
  } else {
    stopped_ = true;
  }
}

void rma_read::on_ended(void* request, ucs_status_t status, void* argument) {
  part& done = *static_cast<part*>(argument);
  rma_read& read = *done.owner;
  endpoint_core& from = *read.from_;
  const ucx_callback scope(from.worker(), request);
  // In unclear cases pieces are asked for, which the connection's loss ends.
  if (status != UCS_OK && fate_of(status) == transfer_fate::lost) from.lost(status);
  read.ended(done, status);
  read.user_->part_ended();
}

void rma_read::drop_key() noexcept {
  if (key_ != nullptr) from_->worker().api().rkey_destroy(std::exchange(key_, nullptr));
}

void rma_read::end() noexcept {
  drop_key();
  from_->remove(*this);
  const worker_core& worker = from_->worker();
  end_registration(worker.api(), worker.context().handle(), into_.first(posted_));
}

}  // namespace ucx::detail
