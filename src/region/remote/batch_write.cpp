#include "region/remote/batch_write.hpp"

#include <utility>

#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/frame_sender.hpp"
#include "connection/write_tracker.hpp"
#include "region/remote/remote_region_core.hpp"
#include "wire/range_list.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void batch_write::begin(std::shared_ptr<remote_region_core> region,
                        std::shared_ptr<write_tracker> tracker, std::span<const write_piece> pieces,
                        std::uint64_t total, clock::time_point deadline) {
  const std::uint64_t first = pieces.front().offset;
  // A write on the books has started: nothing may throw from there on.
  region->endpoint().worker().sender().questions().make_room();
  pieces_.assign(pieces.begin(), pieces.end());
  tracker_ = std::move(tracker);
  number_ = tracker_->begin(first, total);
  epoch_ = region->endpoint().operations().writes().begin();
  on_the_books_ = true;
  // The books' own reference: the answer comes when the request is done.
  enter(std::move(region), first, total, deadline, 1);
}

void batch_write::ask() {
  range_list::begin(pieces_.size(), message_);
  for (const write_piece& each : pieces_) {
    range_list::append({each.offset, each.from.size()}, message_);
  }
  for (const write_piece& each : pieces_) {
    message_.insert(message_.end(), each.from.begin(), each.from.end());
  }
  pieces_.clear();
  frame asked = question(opcode::write_batch);
  asked.length = length_;
  send_question(asked, message_);
  complete({});  // the caller's memory is free
}

void batch_write::answered(const frame& answer, std::span<const std::byte>) {
  if (answer.code != opcode::written || (answer.status == 0 && answer.length != length_)) {
    return blame_peer("a write was answered with what it did not send");
  }
  settle(status_error(answer.status));
}

void batch_write::give_up_for(std::error_code why) noexcept {
  retain();
  if (!done()) complete(why);
  settle(why);
  release();
}

/// Takes it off the books, which may end it.
void batch_write::settle(std::error_code why) {
  if (!std::exchange(on_the_books_, false)) return;
  leave();
  if (why) {
    tracker_->fail(number_, why, if_there_is_memory([this] { return describe(); }));
  } else {
    tracker_->confirm(number_, length_);
  }
  endpoint()->operations().write_ended(epoch_);
  release();
}

void batch_write::recycle() noexcept {
  tracker_.reset();
  region_.reset();
  worker().pool_of<batch_write>().give_back(this);
}

}  // namespace ucx::detail
