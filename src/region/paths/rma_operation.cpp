#include "region/paths/rma_operation.hpp"

#include <algorithm>
#include <utility>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/write_tracker.hpp"
#include "region/paths/peer_region.hpp"
#include "ucp/status.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

ucp_request_param_t callback_params(ucp_send_nbx_callback_t callback, void* self) {
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = callback;
  params.user_data = self;
  return params;
}

}  // namespace

rma_operation* rma_operation::read(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                                   std::uint64_t offset, std::span<std::byte> into,
                                   clock::time_point deadline, std::error_code& ec) {
  endpoint_core& connection = region->endpoint();
  worker_core& worker = connection.worker();
  rma_operation* operation = worker.pool_of<rma_operation>().take();
  const ucp_request_param_t params = callback_params(&rma_operation::on_done, operation);
  operation->offset_ = offset;
  operation->length_ = into.size();
  operation->begin();
  operation->region_ = std::move(region);
  operation->start(worker, connection.shared_from_this(), deadline);
  connection.operations().rma_started();
  operation->transfer([&] {
    return worker.api().get_nbx(connection.handle(), into.data(), into.size(),
                                operation->region_->descriptor().address + offset, key, &params);
  });
  return operation->posted(ec);
}

rma_operation* rma_operation::write(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                                    std::shared_ptr<write_tracker> tracker, std::uint64_t offset,
                                    std::span<const std::byte> from, std::size_t max_piece,
                                    clock::time_point deadline, std::error_code& ec) {
  endpoint_core& connection = region->endpoint();
  worker_core& worker = connection.worker();
  rma_operation* operation = worker.pool_of<rma_operation>().take();
  const ucp_request_param_t params = callback_params(&rma_operation::on_done, operation);
  operation->offset_ = offset;
  operation->length_ = from.size();
  operation->begin();
  operation->tracker_ = std::move(tracker);
  operation->tracker_->begin_unconfirmable(offset, from.size());
  operation->region_ = std::move(region);
  operation->start(worker, connection.shared_from_this(), deadline);
  connection.operations().rma_started();
  const std::uint64_t into = operation->region_->descriptor().address + offset;
  for (std::size_t at = 0; at < from.size() && operation->failure_ == UCS_OK;
       at += std::min(max_piece, from.size() - at)) {
    const std::span<const std::byte> piece =
        from.subspan(at, std::min(max_piece, from.size() - at));
    operation->transfer([&] {
      return worker.api().put_nbx(connection.handle(), piece.data(), piece.size(), into + at, key,
                                  &params);
    });
  }
  return operation->posted(ec);
}

void rma_operation::begin() noexcept {
  given_up_.clear();
  in_flight_ = 0;
  posting_ = true;
  failure_ = UCS_OK;
}

/// Has UCX move bytes by `start`.
template <class Start>
void rma_operation::transfer(const Start& start) {
  endpoint()->transfer_started();
  ++in_flight_;
  const ucs_status_ptr_t started = start();
  if (UCS_PTR_IS_PTR(started)) return;
  transfer_ended(UCS_PTR_RAW_STATUS(started));
}

void rma_operation::transfer_ended(ucs_status_t status) noexcept {
  --in_flight_;
  endpoint()->transfer_ended();
  if (failure_ == UCS_OK) failure_ = status;
}

rma_operation* rma_operation::posted(std::error_code& ec) {
  posting_ = false;
  if (in_flight_ > 0) return this;
  // Ended within the call: UCX does not know this operation, so both references go here.
  if (failure_ != UCS_OK) {
    // No word of it to the connection, which may be as good as before: a read goes by message then.
    ec = make_error(failure_);
    if (tracker_) tracker_->flushed(0, ec);
  }
  complete(ec);
  release();
  return nullptr;
}

void rma_operation::on_done(void* request, ucs_status_t status, void* self) {
  auto& ended = *static_cast<rma_operation*>(self);
  ended.worker().api().request_free(request);
  ended.transfer_ended(status);
  if (ended.in_flight_ == 0 && !ended.posting_) ended.over();
}

void rma_operation::over() {
  std::error_code outcome = make_error(failure_);
  if (outcome) {
    // Where its own memory was refused, the connection goes on.
    if (outcome != errc::io_error && outcome != errc::no_memory) endpoint()->note(failure_);
    // UCX says "canceled" of what a lost connection took with it.
    if (given_up_)
      outcome = given_up_;
    else if (const std::error_code lost = endpoint()->status())
      outcome = lost;
    if (tracker_) tracker_->flushed(0, outcome);
  }
  complete(outcome);
}

void rma_operation::give_up(errc why) noexcept {
  if (done()) return;
  move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
  if (given_up_) return;
  given_up_ = make_error_code(why);
  // Where UCX watches the connection, dropping it stops the transfer. On one host (no watching)
  // only local progress is needed, which goes on by itself.
  if (endpoint()->detects_failure()) {
    endpoint()->fail(
        make_error_code(errc::connection_reset),
        if_there_is_memory("a transfer by RMA can only be stopped with its connection"));
  }
}

void rma_operation::connection_failed(std::error_code why) noexcept {
  if (!given_up_) given_up_ = why;
}

std::string rma_operation::describe() const {
  return std::string(tracker_ ? "write of " : "read of ") + std::to_string(length_) +
         " bytes at offset " + std::to_string(offset_) + " of " + region_->description();
}

void rma_operation::recycle() noexcept {
  region_.reset();
  tracker_.reset();
  worker().pool_of<rma_operation>().give_back(this);
}

}  // namespace ucx::detail
