#include "connection/flush_operation.hpp"

#include <utility>

#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/posted_operations.hpp"
#include "ucp/status.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void flush_operation::begin(worker_core& worker, std::shared_ptr<endpoint_core> endpoint,
                            std::shared_ptr<write_tracker> tracker,
                            std::shared_ptr<posted_operations> posted, bool by_ucx,
                            clock::time_point deadline) {
  tracker_ = std::move(tracker);
  posted_ = std::move(posted);
  posted_epoch_ = posted_ ? posted_->close_epoch() : 0;
  waits_for_posted_ = false;
  waits_for_turn_ = false;
  was_given_up_ = false;
  failed_.clear();
  ucx_status_.reset();
  last_write_ = tracker_ ? tracker_->last_number() : 0;
  ucx_request_ = nullptr;
  if (by_ucx && !tracker_) epoch_ = endpoint->operations().writes().close();
  start(worker, std::move(endpoint), deadline);
  if (!by_ucx) return flushed_by_ucx({});
  mark_ = tracker_ ? tracker_->unconfirmable_mark() : 0;
  staged_transfers* const before = this->endpoint()->staged();
  if (before == nullptr || before->empty()) return begin_by_ucx();
  waits_for_turn_ = true;
  before->add(*this);
}

void flush_operation::begin_by_ucx() {
  if (this->endpoint()->handle() == nullptr) return flushed_by_ucx(this->endpoint()->status());
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = &flush_operation::on_flushed;
  params.user_data = this;
  retain();  // UCX's callback comes in any case, also after this was given up
  this->endpoint()->transfer_started();
  ucs_status_ptr_t started = worker().api().ep_flush_nbx(this->endpoint()->handle(), &params);
  if (UCS_PTR_IS_PTR(started)) {
    ucx_request_ = started;
    return;
  }
  this->endpoint()->transfer_ended();
  const ucs_status_t status = UCS_PTR_RAW_STATUS(started);
  if (status != UCS_OK) ucx_status_ = status;
  flushed_by_ucx(transfer_error(status));
  release();
}

void flush_operation::staged_ended(ucs_status_t) noexcept {
  waits_for_turn_ = false;
  begin_by_ucx();
}

void flush_operation::on_flushed(void* request, ucs_status_t status, void* self) {
  auto& flush = *static_cast<flush_operation*>(self);
  const ucx_callback scope(flush.worker(), request);
  flush.endpoint()->transfer_ended();
  flush.ucx_request_ = nullptr;
  if (status != UCS_OK) flush.endpoint()->note(status);
  std::error_code outcome = transfer_error(status);
  if (outcome && !flush.done()) {
    flush.ucx_status_ = status;
    if (const std::error_code lost = flush.endpoint()->status()) outcome = lost;
  }
  if (!flush.done()) flush.flushed_by_ucx(outcome);
  flush.release();
}

void flush_operation::flushed_by_ucx(std::error_code outcome) {
  if (tracker_ && (outcome || tracker_->has_unconfirmable())) tracker_->flushed(mark_, outcome);
  if (!tracker_) {
    if (!outcome && !endpoint()->operations().writes().settled(epoch_)) {
      return endpoint()->operations().add(*this);
    }
    return finish(outcome);
  }
  if (!tracker_->settled(last_write_)) return tracker_->add(*this);
  writes_settled();
}

void flush_operation::writes_settled() {
  // Writes also settle when their connection takes them with it.
  if (!tracker_) return finish(endpoint()->failure());
  if (!posted_ || posted_->settled(posted_epoch_)) return posted_settled();
  waits_for_posted_ = true;
  posted_->add(*this);
}

void flush_operation::posted_settled() {
  waits_for_posted_ = false;
  result<void> of_posted;
  if (posted_) of_posted = posted_->take_failure(posted_epoch_);
  const std::error_code of_writes = tracker_->take_failure(last_write_);
  if (!of_posted) {
    failed_ = std::move(of_posted.why().text);
    ucx_status_ = of_posted.why().ucx_status;
    return finish(of_posted.why().code);
  }
  if (of_writes) failed_ = if_there_is_memory([this] { return tracker_->failed_write(); });
  finish(of_writes);
}

void flush_operation::set_blocking() noexcept {
  if (done() || is_blocking()) return;
  operation::set_blocking();
  if (tracker_) tracker_->begin_wait();
}

void flush_operation::finish(std::error_code outcome) noexcept {
  if (tracker_ && is_blocking()) tracker_->end_wait();
  if (std::exchange(waits_for_turn_, false)) endpoint()->staged()->leave(*this);
  if (std::exchange(waits_for_posted_, false)) {
    posted_->remove(*this);
  } else if (tracker_) {
    tracker_->remove(*this);
  } else {
    endpoint()->operations().remove(*this);
  }
  endpoint()->closing().look();  // which may wait for it
  complete(outcome);
}

void flush_operation::give_up(errc why) noexcept {
  if (done()) return;
  ucx_status_.reset();
  was_given_up_ = true;
  finish(make_error_code(why));
}

void flush_operation::connection_failed(std::error_code why) noexcept {
  if (done()) return;
  // The writes themselves fail with the connection and settle this flush. That leaves a bare one,
  // and one that waits for its turn.
  if (waits_for_turn_ && tracker_) tracker_->flushed(mark_, why);
  if (waits_for_turn_ || !tracker_) finish(why);
}

std::string flush_operation::describe() const {
  std::string text = "flush of the writes to " + endpoint()->peer_name();
  if (!failed_.empty()) text.append(": ").append(failed_);
  return text;
}

void flush_operation::recycle() noexcept {
  tracker_.reset();
  posted_.reset();
  worker().pool_of<flush_operation>().give_back(this);
}

}  // namespace ucx::detail
