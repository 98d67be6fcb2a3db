#include "region/paths/rma_operation.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/write_tracker.hpp"
#include "region/paths/peer_region.hpp"
#include "ucp/status.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// In this time UCX's error handler tells of a loss that has ended transfers.
constexpr std::chrono::milliseconds until_clear{200};

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
  operation->begin(std::move(region), nullptr, offset, into.size(), deadline);
  operation->transfer([&] {
    return worker.api().get_nbx(connection.handle(), into.data(), into.size(),
                                operation->region_->descriptor().address + offset, key, &params);
  });
  return operation->posted(ec);
}

rma_operation* rma_operation::write(std::shared_ptr<peer_region> region, ucp_rkey_h key,
                                    std::shared_ptr<write_tracker> tracker, std::uint64_t offset,
                                    std::span<const std::byte> from, clock::time_point deadline,
                                    std::error_code& ec) {
  endpoint_core& connection = region->endpoint();
  worker_core& worker = connection.worker();
  rma_operation* operation = worker.pool_of<rma_operation>().take();
  const ucp_request_param_t params = callback_params(&rma_operation::on_done, operation);
  operation->begin(std::move(region), std::move(tracker), offset, from.size(), deadline);
  operation->transfer([&] {
    return worker.api().put_nbx(connection.handle(), from.data(), from.size(),
                                operation->region_->descriptor().address + offset, key, &params);
  });
  return operation->posted(ec);
}

void rma_operation::begin(std::shared_ptr<peer_region> region,
                          std::shared_ptr<write_tracker> tracker, std::uint64_t offset,
                          std::size_t length, clock::time_point deadline) {
  given_up_.clear();
  in_flight_ = posting_ = true;
  unclear_ = false;
  failure_ = UCS_OK;
  offset_ = offset;
  length_ = length;
  tracker_ = std::move(tracker);
  if (tracker_) tracker_->begin_unconfirmable(offset, length);
  region_ = std::move(region);
  endpoint_core& connection = region_->endpoint();
  start(connection.worker(), connection.shared_from_this(), deadline);
  connection.operations().rma_started();
}

/// Has UCX move bytes by `start`.
template <class Start>
void rma_operation::transfer(const Start& start) {
  endpoint()->transfer_started();
  const ucs_status_ptr_t started = start();
  if (UCS_PTR_IS_PTR(started)) return;
  endpoint()->transfer_ended();
  transfer_ended(UCS_PTR_RAW_STATUS(started));
}

void rma_operation::transfer_ended(ucs_status_t status) {
  in_flight_ = false;
  failure_ = status;
  if (!posting_) over();
}

void rma_operation::transfer_lost(ucs_status_t status) {
  posting_ = false;
  transfer_ended(status);
}

rma_operation* rma_operation::posted(std::error_code& ec) {
  posting_ = false;
  if (in_flight_) return this;
  // Ended within the call: UCX does not know this operation, so both references go here.
  if (failure_ != UCS_OK) {
    // No word to a connection that may be as good as before: a read goes by message then.
    ec = outcome();
    if (tracker_) tracker_->flushed(0, ec);
  }
  complete(ec);
  release();
  return nullptr;
}

void rma_operation::on_done(void* request, ucs_status_t status, void* self) {
  auto& ended = *static_cast<rma_operation*>(self);
  const ucx_callback scope(ended.worker(), request);
  ended.endpoint()->transfer_ended();
  ended.transfer_ended(status);
}

std::error_code rma_operation::outcome() const noexcept {
  if (failure_ == UCS_OK) return {};
  if (given_up_) return given_up_;
  if (const std::error_code lost = endpoint()->status()) return lost;
  return transfer_error(failure_);
}

void rma_operation::over() {
  if (failure_ == UCS_OK || given_up_ || endpoint()->status()) return finish();
  const bool is_watched = endpoint()->detects_failure();
  switch (fate_of(failure_)) {
    case transfer_fate::alone:
      if (failure_ != UCS_ERR_NO_MEMORY) endpoint()->note(failure_);
      return finish();
    case transfer_fate::unclear:
      if (!is_watched) return finish();
      unclear_ = true;
      move_deadline(std::min(deadline(), after(worker().api().now(), until_clear)));
      return worker().tick_soon();
    case transfer_fate::lost:
      endpoint()->note(failure_);
      if (is_watched) endpoint()->lost(failure_);
      return finish();
  }
}

void rma_operation::finish() noexcept {
  const std::error_code ended = outcome();
  if (ended && tracker_) tracker_->flushed(0, ended);
  complete(ended);
}

void rma_operation::abandon(std::error_code why) noexcept {
  given_up_ = why;
  failure_ = UCS_ERR_CANCELED;
  finish();
}

void rma_operation::give_up(errc why) noexcept {
  if (done()) return;
  if (unclear_) return finish();
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
  if (done()) return;
  if (!given_up_) given_up_ = why;
  if (unclear_) finish();
}

std::string rma_operation::describe() const {
  return std::string(tracker_ ? "write of " : "read of ") + std::to_string(length_) +
         " bytes at offset " + std::to_string(offset_) + " of " + region_->description();
}

void rma_operation::forget() noexcept {
  region_.reset();
  tracker_.reset();
}

void rma_operation::recycle() noexcept {
  forget();
  worker().pool_of<rma_operation>().give_back(this);
}

}  // namespace ucx::detail
