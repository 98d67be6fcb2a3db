#include "detail/message_write.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "detail/deadline.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/message_router.hpp"
#include "detail/operation_pools.hpp"
#include "detail/remote_region_core.hpp"
#include "detail/worker_core.hpp"
#include "detail/write_tracker.hpp"

namespace ucx::detail {

void message_write::begin(std::shared_ptr<remote_region_core> region,
                          std::shared_ptr<write_tracker> tracker, std::uint64_t offset,
                          std::span<const std::byte> from, clock::time_point deadline) {
  tracker_ = std::move(tracker);
  number_ = tracker_->begin(offset, from.size());
  epoch_ = region->endpoint().operations().writes().begin();
  from_ = from;
  confirmed_ = 0;
  room_ = 0;
  asked_ = false;
  given_up_ = false;
  failure_.clear();
  on_the_books_ = true;
  // The books' own reference: an answer may come long after the request is done.
  enter(std::move(region), offset, from.size(), deadline, 1);
}

void message_write::ask() {
  asked_ = true;
  frame first = question(opcode::write);
  first.offset = offset_;
  prepare_pieces(*endpoint(), first, from_);
  send_pieces();
}

void message_write::send_more() {
  retain();
  send_pieces();
  release();
}

/// Called before each piece, which is sent where this says so.
bool message_write::may_post() noexcept {
  std::size_t next = worker().context().write_piece();
  if (!endpoint()->detects_failure()) next = std::min(next, largest_copy);
  next = static_cast<std::size_t>(std::min<std::uint64_t>(next, length_ - posted()));
  const std::uint64_t room = region_->room_for(next);
  if (!region_->may_send(*this, room)) return false;
  room_ += room;
  return !copier_ || stage(next);
}

/// Copies the next piece out of the device's memory; where that fails, so does the write.
bool message_write::stage(std::size_t size) noexcept {
  std::error_code ec;
  try {
    staged_.resize(size);
    ec = copier_->copy_out(staged_.data(), from_.data() + posted(), size);
  } catch (const std::bad_alloc&) {
    ec = errc::no_memory;
  }
  if (ec) give_up_for(ec);
  return !ec;
}

piece_sender::wrapped_piece message_write::wrap(sent_piece& piece, bool copies) {
  if (!copier_) return piece_sender::wrap(piece, copies);
  frame said = question(opcode::write);
  said.offset = offset_ + posted();
  said.length = staged_.size();
  said.encode(piece.header);
  piece.copy.swap(staged_);
  return {message_router::message_id, frame::size, piece.copy};
}

/// What the owner has not answered takes no room any more: this write is over.
void message_write::leave_window() noexcept {
  const std::shared_ptr<remote_region_core> region = region_;
  region->stops_waiting(*this);
  region->freed(std::exchange(room_, 0));
}

void message_write::answered(const frame& answer, std::span<const std::byte>) {
  if (failure_) return;  // pieces behind the one that was refused
  if (answer.code != opcode::written || answer.length == 0 ||
      answer.length > posted() - confirmed_) {
    return blame_peer("a write was answered with what it did not send");
  }
  if (answer.status != 0) return give_up_for(status_error(answer.status));
  confirmed_ += answer.length;
  retain();
  const std::uint64_t room = std::min(room_, region_->room_for(answer.length));
  room_ -= room;
  region_->freed(room);
  tracker_->confirm(number_, answer.length);
  if (confirmed_ == length_) pieces_moved();
  release();
}

void message_write::give_up_for(std::error_code why) noexcept {
  if (given_up_) return linger();
  given_up_ = true;
  if (confirmed_ < length_) failure_ = why;  // else it is a success, as soon as UCX lets go
  stop_pieces();
  region_->stops_waiting(*this);
  if (!done() && sending()) {
    move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
    worker().tick_soon();
  }
  pieces_moved();
}

/// Once UCX has had the time to let go of the caller's memory and did not, the connection has to.
/// That takes a round of UCX's at least.
void message_write::linger() noexcept {
  const clock::time_point now = worker().api().now();
  if (done() || now < deadline()) return;
  move_deadline(after(now, worker().options().heartbeat_timeout));
  endpoint()->fail(make_error_code(errc::connection_reset),
                   "data of a write that was given up was still on its way");
}

/// Ends what can end: the request when UCX has let go of the memory, the books when all is
/// answered.
void message_write::pieces_moved() {
  if (sending()) return;
  if (!failure_ && !(asked_ && all_posted())) return;
  const bool answered = failure_ || confirmed_ == length_;
  const bool off_the_books = answered && std::exchange(on_the_books_, false);
  if (off_the_books) {
    leave_window();
    if (failure_) tracker_->fail(number_, failure_, describe());
    leave();
    endpoint()->operations().write_ended(epoch_);
  }
  if (!done()) complete(answered ? failure_ : std::error_code());
  if (off_the_books) release();
}

void message_write::recycle() noexcept {
  tracker_.reset();
  copier_.reset();
  region_.reset();
  worker().pools().writes.give_back(this);
}

}  // namespace ucx::detail
