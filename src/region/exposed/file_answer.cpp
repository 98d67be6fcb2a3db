#include "region/exposed/file_answer.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "connection/piece_sender.hpp"
#include "region/exposed/exposed_region.hpp"
#include "region/exposed/file_service.hpp"
#include "region/exposed/region_service.hpp"
#include "wire/digest.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void file_answer::begin(file_service& service, file_client& client, endpoint_core& to,
                        exposed_region& region, const frame& asked) {
  service_ = &service;
  client_ = &client;
  peer_ = &to;
  region_ = &region;
  file_ = region.source();
  asked_ = asked;
  next_ = 0;
  busy_ = 0;
  sending_ = 0;
  stopped_ = false;
  small_ = false;
  to.answer_started(asked.length);
  service_->queue(*this);
}

bool file_answer::wants_buffer() const noexcept {
  return !stopped_ && next_ < asked_.length && busy_ < most_pieces;
}

void file_answer::read_into(staging_buffer buffer) {
  piece& taken =
      *std::find_if(pieces_.begin(), pieces_.end(), [](const piece& p) { return !p.busy; });
  ++busy_;
  taken.owner = this;
  taken.busy = true;
  taken.offset = next_;
  taken.posted = 0;
  taken.size = static_cast<std::size_t>(
      std::min<std::uint64_t>(peer_->pieces().answer, asked_.length - next_));
  taken.buffer = std::move(buffer);
  next_ += taken.size;
  if (!wants_buffer()) service_->unqueue(*this);
  // The region was withdrawn, which did not wait for this answer; or it may not be read any more.
  if (!file_ || !region_service::may_read(*peer_, *region_)) {
    release(taken);
    refuse_rest(errc::revoked);
    return settle();
  }
  const std::size_t present =
      file_->read_now(asked_.offset + taken.offset, {taken.buffer.get(), taken.size});
  if (present < taken.size) {
    ask_disk(taken, present);
  } else {
    send(taken);
  }
  settle();
}

void file_answer::ask_disk(piece& missing, std::size_t present) {
  std::error_code why = errc::busy;
  try {
    if (start_reading(missing, present)) return;
  } catch (const std::bad_alloc&) {
    why = errc::no_memory;
  }
  // start_reading() may have moved the buffer into the slow_read already.
  if (missing.slow) missing.buffer = std::move(missing.slow->buffer);
  missing.slow.reset();
  release(missing);
  refuse_rest(why);
}

/// Returns whether the disk has it now.
bool file_answer::start_reading(piece& missing, std::size_t present) {
  const auto read = std::make_shared<slow_read>();
  read->file = file_;
  read->offset = asked_.offset + missing.offset + present;
  read->into = {missing.buffer.get() + present, missing.size - present};
  read->buffer = std::move(missing.buffer);
  read->service = service_;
  read->answer = this;
  read->slot = static_cast<std::size_t>(&missing - pieces_.data());
  missing.slow = read;
  return service_->read_slowly(read);
}

void file_answer::read_done(slow_read& done) {
  piece& filled = pieces_[done.slot];
  filled.slow.reset();
  filled.buffer = std::move(done.buffer);
  if (done.error) {
    release(filled);
    refuse_rest(done.error);
  } else {
    send(filled);
  }
  settle();
}

/// Sends what is left of a piece: in one message, unless UCX can not register the buffer.
void file_answer::send(piece& filled) {
  while (filled.posted < filled.size) {
    // A connection that was dropped or is being closed here gets no more pieces.
    if (stopped_ || peer_->handle() == nullptr || peer_->status()) {
      release(filled);
      return stop();
    }
    const std::size_t left = filled.size - filled.posted;
    const std::size_t size = small_ ? std::min(left, piece_sender::small_piece) : left;
    ucs_status_ptr_t const posted = post(filled, size);
    if (UCS_PTR_IS_PTR(posted)) return;
    const ucs_status_t status = UCS_PTR_RAW_STATUS(posted);
    if (!small_ && piece_sender::is_unregistered(*peer_, size, status)) {
      small_ = true;
      filled.posted -= size;
      sent(filled, UCS_OK);
      peer_->tell_of_copies(status);
    } else if (!sent(filled, status)) {
      return;
    }
  }
  release(filled);
  if (peer_->status()) stop();
}

ucs_status_ptr_t file_answer::post(piece& filled, std::size_t size) {
  const std::span<const std::byte> bytes(filled.buffer.get() + filled.posted, size);
  frame said;
  said.code = opcode::data;
  said.session = asked_.session;
  said.request = asked_.request;
  said.offset = filled.offset + filled.posted;
  said.length = size;
  if (wants_digests(asked_)) seal(said, asked_, bytes);
  said.encode(filled.header);
  ucp_request_param_t params = {};
  params.op_attr_mask =
      UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = &file_answer::on_sent;
  params.user_data = &filled;
  filled.sending = true;
  filled.posted += size;
  ++sending_;
  peer_->transfer_started();
  return peer_->worker().api().am_send_nbx(peer_->handle(), frame_sender::message_id,
                                           filled.header.data(), filled.header.size(), bytes.data(),
                                           bytes.size(), &params);
}

void file_answer::on_sent(void* request, ucs_status_t status, void* argument) {
  piece& done = *static_cast<piece*>(argument);
  file_answer& answer = *done.owner;
  file_service& service = *answer.service_;
  const ucx_callback scope(answer.peer_->worker(), request);
  if (answer.sent(done, status)) answer.send(done);
  answer.settle();
  service.serve();
}

/// UCX has the message no more; returns whether the rest of the piece may go.
bool file_answer::sent(piece& done, ucs_status_t status) {
  done.sending = false;
  --sending_;
  peer_->transfer_ended();
  if (status == UCS_OK) return true;
  release(done);
  stop();
  peer_->lost(status);
  return false;
}

void file_answer::release(piece& done) noexcept {
  done.busy = false;
  --busy_;
  service_->give_back(*client_, std::move(done.buffer));
}

/// Nothing more is read or sent; what UCX has is left to it, and what the disk has to the disk.
void file_answer::stop() noexcept {
  if (std::exchange(stopped_, true)) return;
  if (queued()) service_->unqueue(*this);
  bool abandoned = false;
  for (piece& each : pieces_) {
    if (!each.slow) continue;
    abandoned = true;
    each.slow->answer = nullptr;
    each.slow->unwanted.store(true, std::memory_order_relaxed);
    each.slow.reset();
    each.busy = false;
    --busy_;
    service_->abandon_buffer(*client_);
  }
  if (abandoned) service_->reclaim_buffers();
}

void file_answer::let_go_of_region() noexcept {
  if (region_ != nullptr) std::exchange(region_, nullptr)->end_access();
  file_.reset();
}

void file_answer::refuse_rest(std::error_code why) {
  if (stopped_) return;
  stop();
  if (peer_->handle() == nullptr || peer_->status()) return;
  try {
    service_->refuse(*peer_, asked_, why);
  } catch (const std::bad_alloc&) {  // nothing reports it later
    peer_->blame(errc::no_memory, "no memory to refuse a read");
  }
}

void file_answer::refuse(std::error_code why) {
  refuse_rest(why);
  let_go_of_region();
  settle();
}

void file_answer::peer_failed() {
  stop();
  settle();
}

void file_answer::settle() {
  const bool over = stopped_ || (next_ == asked_.length && busy_ == 0);
  if (over && sending_ == 0) {
    peer_->answer_ended(asked_.length);
    forget();
  } else if (wants_buffer() && !queued()) {
    service_->queue(*this);
  }
}

void file_answer::forget() noexcept {
  stop();
  for (piece& each : pieces_) {
    if (each.busy) release(each);
    each.sending = false;
  }
  let_go_of_region();
  service_->ended(*this);
}

}  // namespace ucx::detail
