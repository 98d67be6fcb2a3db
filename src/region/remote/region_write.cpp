#include "region/remote/region_write.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "connection/write_tracker.hpp"
#include "region/remote/remote_region_core.hpp"
#include "worker/worker_copy.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void region_write::begin(std::shared_ptr<remote_region_core> region,
                         std::shared_ptr<write_tracker> tracker, std::uint64_t offset,
                         std::span<const std::byte> from, clock::time_point deadline) {
  // A write on the books has started: nothing may throw from there on.
  region->endpoint().worker().sender().questions().make_room();
  tracker_ = std::move(tracker);
  number_ = tracker_->begin(offset, from.size());
  epoch_ = region->endpoint().operations().writes().begin();
  from_ = from;
  confirmed_ = 0;
  room_ = 0;
  copied_to_ = 0;
  failure_.clear();
  reach(step::begun);
  // The books' own reference: an answer may come long after the request is done.
  enter(std::move(region), offset, from.size(), deadline, 1);
}

bool region_write::is_blocking() const noexcept {
  return operation::is_blocking() || (tracker_ && tracker_->is_waited_for());
}

void region_write::ask() {
  if (!is_moving()) return send();
  // Only read: the bytes go into the owner's memory.
  move({const_cast<std::byte*>(from_.data()), from_.size()}, true);
}

/// The bytes are written if the owner still lends the memory. Else they go by message, and the
/// owner says what has become of it.
void region_write::moved(std::error_code outcome) {
  if (step_ == step::given_up) {
    forget_mover();
    return pieces_moved();
  }
  const bool over = region_->path().was_moved(length_, outcome);
  forget_mover();
  if (!over) return send();
  if (outcome) return give_up_for(outcome);
  confirmed_ = length_;
  tracker_->confirm(number_, length_);
  pieces_moved();
}

void region_write::send() {
  reach(step::sent);
  frame first = question(opcode::write);
  first.offset = offset_;
  prepare_pieces(*endpoint(), first, from_);
  send_pieces();
}

void region_write::send_more() {
  retain();
  send_pieces();
  release();
}

class region_write::piece_copy final : public worker_copy {
 public:
  piece_copy(region_write& owner, staging_buffer into)
      : worker_copy(owner.worker(), std::move(into)), owner_(owner) {}
  bool over() const noexcept { return static_cast<bool>(filled); }

  staging_buffer filled;  // what `host` is in, when it is over

 private:
  void arrived() override {
    filled = std::move(buffer);
    if (error) return owner_.give_up_for(error);
    owner_.send_more();
  }

  region_write& owner_;  // which abandons it before it goes
};

std::size_t region_write::largest_piece() const noexcept {
  const std::size_t largest = endpoint()->pieces().write;
  return shrunk(endpoint()->detects_failure() ? largest : std::min(largest, largest_copy));
}

/// Called before each piece, which is sent where this says so.
bool region_write::may_post() noexcept {
  if (copier_ && !next_is_copied()) return false;
  const auto next = std::min<std::uint64_t>(largest_piece(), length_ - posted());
  const std::uint64_t room = region_->window().room_for(next);
  if (!region_->window().may_send(*this, room)) return false;
  room_ += room;
  return true;
}

/// If the next piece is not copied yet, its copy calls send_more() at the end.
bool region_write::next_is_copied() noexcept {
  if (const std::error_code ec = copy_ahead()) {
    give_up_for(ec);
    return false;
  }
  return ahead_.front()->over();
}

std::error_code region_write::copy_ahead() noexcept {
  try {
    while (copied_to_ < length_ && ahead_.size() < most_copied_ahead) {
      const auto size =
          static_cast<std::size_t>(std::min<std::uint64_t>(largest_piece(), length_ - copied_to_));
      staging_buffer into = worker().staging_shelf().take(size);
      if (!into) return errc::no_memory;
      auto copy = std::make_shared<piece_copy>(*this, std::move(into));
      copy->host = {copy->buffer.get(), size};
      // Only read: the bytes go out of the device's memory.
      copy->device = const_cast<std::byte*>(from_.data()) + copied_to_;
      copy->after = after_;
      ahead_.push_back(copy);
      if (const std::error_code ec = copier_->start(std::move(copy))) {
        ahead_.pop_back();
        return ec;
      }
      copied_to_ += size;
    }
    return {};
  } catch (const std::bad_alloc&) {
    return errc::no_memory;
  }
}

piece_sender::wrapped_piece region_write::wrap(sent_piece& piece, bool copies) {
  if (!copier_) return piece_sender::wrap(piece, copies);
  piece_copy& next = *ahead_.front();
  frame said = question(opcode::write);
  said.offset = offset_ + posted();
  said.length = next.host.size();
  said.encode(piece.header);
  piece.staged = std::move(next.filled);
  const std::span<const std::byte> bytes = next.host;
  ahead_.pop_front();
  return {frame_sender::message_id, frame::size, bytes};
}

void region_write::taken_back(std::size_t size) noexcept {
  const std::uint64_t room = region_->window().room_for(size);
  room_ -= room;
  region_->window().freed(room);
}

/// Gives back room for bytes that the owner has not answered: this write is over.
void region_write::leave_window() noexcept {
  const std::shared_ptr<remote_region_core> region = region_;
  region->window().stops_waiting(*this);
  region->window().freed(std::exchange(room_, 0));
}

void region_write::answered(const frame& answer, std::span<const std::byte>) {
  if (failure_) return;  // pieces behind the one that was refused
  if (is_moving()) return blame_peer("a write was answered that was not sent");
  if (answer.code != opcode::written || answer.length == 0 ||
      answer.length > posted() - confirmed_) {
    return blame_peer("a write was answered with what it did not send");
  }
  if (answer.status != 0) return give_up_for(status_error(answer.status));
  confirmed_ += answer.length;
  retain();
  const std::uint64_t room = std::min(room_, region_->window().room_for(answer.length));
  room_ -= room;
  region_->window().freed(room);
  tracker_->confirm(number_, answer.length);
  if (confirmed_ == length_) pieces_moved();
  release();
}

void region_write::give_up_for(std::error_code why) noexcept {
  if (step_ >= step::given_up) return linger();
  reach(step::given_up);
  if (confirmed_ < length_) failure_ = why;  // else it is a success, as soon as UCX lets go
  stop_pieces();
  for (const std::shared_ptr<piece_copy>& each : ahead_) each->abandon();
  ahead_.clear();
  stop_moving();
  region_->window().stops_waiting(*this);
  if (!done() && sending()) {
    move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
    worker().tick_soon();
  }
  pieces_moved();
}

/// Once UCX has had the time to let go of the caller's memory and did not, the connection has to.
/// That takes a round of UCX's at least.
void region_write::linger() noexcept {
  if (is_moving()) {
    if (stop_moving()) pieces_moved();
    return;
  }
  const clock::time_point now = worker().api().now();
  if (done() || now < deadline()) return;
  move_deadline(after(now, worker().options().heartbeat_timeout));
  endpoint()->fail(make_error_code(errc::connection_reset),
                   if_there_is_memory("data of a write that was given up was still on its way"));
}

/// Ends what can end: the request when UCX has let go of the memory, the books when all is
/// answered.
void region_write::pieces_moved() {
  if (sending() || is_moving()) return;
  if (!failure_ && confirmed_ < length_ && !(step_ == step::sent && all_posted())) return;
  const bool answered = failure_ || confirmed_ == length_;
  const bool off_the_books = answered && step_ != step::over;
  if (off_the_books) {
    reach(step::over);
    leave_window();
    if (failure_)
      tracker_->fail(number_, failure_, if_there_is_memory([this] { return describe(); }));
    leave();
    endpoint()->operations().write_ended(epoch_);
  }
  if (!done()) complete(answered ? failure_ : std::error_code());
  if (off_the_books) release();
}

void region_write::recycle() noexcept {
  tracker_.reset();
  copier_.reset();
  after_.reset();
  region_.reset();
  worker().pool_of<region_write>().give_back(this);
}

}  // namespace ucx::detail
