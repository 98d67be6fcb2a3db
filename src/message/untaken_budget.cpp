#include "message/untaken_budget.hpp"

#include <algorithm>
#include <utility>

namespace ucx::detail {

void untaken_budget::open(room_account& peer, bool borrows, std::size_t most) noexcept {
  std::size_t free = free_within(total_ / 2, in_use_);
  if (!borrows) free = std::min(free, free_within(total_ / 8, stiff_));
  const std::size_t least = borrows ? floor : stiff_floor;
  peer.most_ = std::max(least, most);
  peer.lent_ = std::clamp(free / (peers_.size() + 2), least, peer.most_);
  peer.open_ = true;
  peer.stiff_ = !borrows;
  in_use_ += peer.lent_;
  if (peer.stiff_) stiff_ += peer.lent_;
  peers_.push_back(peer);
}

void untaken_budget::loosen(room_account& peer) noexcept {
  peer.flexible_ = peer.open_;
  if (std::exchange(peer.stiff_, false)) stiff_ -= peer.lent_;
}

void untaken_budget::ask(room_account& peer, bool taken) noexcept {
  if (!peer.may_grow() || peer.written_off_ > 0) return;
  const auto its = is_poor(peer) ? room_account::line::fair : room_account::line::more_than_fair;
  if (taken && peer.line_ != its) join_line(peer, its);
  if (peer.line_ == room_account::line::none) join_line(peer, room_account::line::untaken);
  peer.wanted_ = std::min(std::max(peer.lent_, least_loan), peer.most_ - peer.lent_);
  serve();
}

std::size_t untaken_budget::withhold(room_account& peer, std::size_t units) noexcept {
  const room_account* const first = at(room_account::line::fair).front();
  if (first == nullptr || first == &peer || !peer.flexible_) return 0;
  if (peer.lent_ <= std::max(floor, first->lent_)) return 0;
  const std::size_t kept =
      std::min({units, peer.lent_ - floor, (peer.lent_ - first->lent_ + 1) / 2});
  peer.lent_ -= kept;
  in_use_ -= kept;
  return kept;
}

void untaken_budget::given_back(room_account& peer, std::size_t units) noexcept {
  if (peer.recalls_ > 0) --peer.recalls_;
  const std::size_t lost_before = std::min(units, peer.written_off_);
  peer.written_off_ -= lost_before;
  units -= lost_before;
  // The peer may not have heard of all that it was lent.
  const std::size_t left = peer.lent_ - units;
  const std::size_t returned = left < floor ? floor - left : 0;
  peer.lent_ = left + returned;
  in_use_ -= units;
  in_use_ += returned;
  if (returned > 0) peer.more_lent(returned);
  serve();
}

bool untaken_budget::regain(room_account& peer, std::size_t units) noexcept {
  if (units > peer.written_off_ || units > free_within(total_ + total_ / 8, in_use_)) return false;
  peer.written_off_ -= units;
  peer.lent_ += units;
  in_use_ += units;
  return true;
}

void untaken_budget::shrink(room_account& peer, std::size_t units) noexcept {
  leave(peer);
  in_use_ -= peer.lent_ - units;
  peer.lent_ = units;
  serve();
}

void untaken_budget::close(room_account& peer) noexcept {
  if (!std::exchange(peer.open_, false)) return;
  shrink(peer, 0);
}

/// The peer does not count any more.
void untaken_budget::leave(room_account& peer) noexcept {
  peer.flexible_ = false;
  leave_line(peer);
  if (std::exchange(peer.stiff_, false)) stiff_ -= peer.lent_;
  peer.written_off_ = 0;
  if (static_cast<const list_hook<room_account_tag>&>(peer).linked()) peers_.remove(peer);
}

void untaken_budget::release(std::size_t units) noexcept {
  in_use_ -= units;
  serve();
}

void untaken_budget::serve() noexcept {
  if (!is_short() && at(room_account::line::untaken).empty()) return;
  if (std::exchange(serving_, true)) return;  // a peer that is told may leave
  serve_lines();
  if (is_short() && recall_unused()) serve_lines();
  serving_ = false;
}

void untaken_budget::serve_lines() noexcept {
  if (serve(room_account::line::fair, lendable())) {
    serve(room_account::line::more_than_fair, lendable());
  }
  serve(room_account::line::untaken, total_ / 2);
}

/// Returns whether none waits any more.
bool untaken_budget::serve(room_account::line which, std::size_t limit) noexcept {
  while (room_account* const first = at(which).front()) {
    const std::size_t units = std::min(first->wanted_, free_within(limit, in_use_));
    if (units < std::min(first->wanted_, least_loan)) return false;
    leave_line(*first);
    first->lent_ += units;
    in_use_ += units;
    first->wanted_ -= units;
    if (first->wanted_ > 0) join_line(*first, which);
    first->more_lent(units);
  }
  return true;
}

void untaken_budget::join_line(room_account& peer, room_account::line which) noexcept {
  leave_line(peer);
  peer.line_ = which;
  at(which).push_back(peer);
}

void untaken_budget::leave_line(room_account& peer) noexcept {
  if (peer.line_ == room_account::line::none) return;
  at(peer.line_).remove(peer);
  peer.line_ = room_account::line::none;
}

/// Peers that use less than half of their loans are asked for the other half. One that does not
/// answer in time loses it, and is asked for half of the rest. Returns whether one has lost some.
bool untaken_budget::recall_unused() noexcept {
  const waiting& poor = at(room_account::line::fair);
  const waiting& line = poor.empty() ? at(room_account::line::more_than_fair) : poor;
  std::size_t missing = line.front()->wanted_;
  bool any_lost = false;
  for (std::size_t looks = std::min(most_looks, peers_.size()); looks > 0 && missing > 0; --looks) {
    room_account& next = *peers_.front();
    peers_.remove(next);
    peers_.push_back(next);
    const bool waits = next.line_ != room_account::line::none && is_poor(next);
    if (waits || !next.flexible_ || (next.recalls_ > 0 && !next.is_overdue())) continue;
    if (next.recalls_ > 0) {
      const std::size_t lost = write_off(next);
      missing -= std::min(missing, lost);
      any_lost = any_lost || lost > 0;
    }
    const std::size_t kept = std::max(floor, next.lent_ / 2);
    if (next.unused() <= next.lent_ / 2 || kept >= next.lent_) continue;
    ++next.recalls_;
    next.recalled_ = next.lent_ - kept;
    missing -= std::min(missing, next.recalled_);
    next.recalled(kept);
  }
  return any_lost;
}

/// Returns the units that the peer has no more: none where it uses them by now.
std::size_t untaken_budget::write_off(room_account& peer) noexcept {
  const std::size_t units = std::exchange(peer.recalled_, 0);
  if (units == 0 || peer.unused() < units || peer.lent_ < floor + units) return 0;
  leave_line(peer);
  peer.lent_ -= units;
  peer.written_off_ += units;
  in_use_ -= units;
  return units;
}

}  // namespace ucx::detail
