#include "region/remote/write_window.hpp"

#include <algorithm>
#include <utility>

#include "region/exposed/write_room.hpp"

namespace ucx::detail {

std::uint64_t write_window::room_for(std::uint64_t bytes) const noexcept {
  return write_room(bytes, size_);
}

bool write_window::may_send(waiter& write, std::uint64_t room) noexcept {
  if (size_ == 0) return true;
  // One piece goes in any case, however long.
  const bool fits = taken_ == 0 || taken_ + room <= size_;
  const bool first = waiting_.empty() || waiting_.front() == &write;
  if (fits && first) {
    stops_waiting(write);
    taken_ += room;
    return true;
  }
  if (!write.linked()) waiting_.push_back(write);
  return false;
}

void write_window::freed(std::uint64_t room) noexcept {
  if (size_ == 0) return;
  taken_ -= std::min(taken_, room);
  freed_ = true;
  // One that was called may free room itself: the call below goes on with it.
  if (calling_) return;
  calling_ = true;
  while (std::exchange(freed_, false)) call_waiting();
  calling_ = false;
}

/// Each sends what it may, and goes to the front again if that is not all.
void write_window::call_waiting() noexcept {
  for (std::size_t left = waiting_.size(); left > 0 && !waiting_.empty(); --left) {
    waiter& next = *waiting_.front();
    next.send_more();
    if (waiting_.front() == &next) break;
  }
}

void write_window::stops_waiting(waiter& write) noexcept {
  if (write.linked()) waiting_.remove(write);
}

}  // namespace ucx::detail
