#include "engine/write_behind.hpp"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {

void write_behind::send(std::uint64_t offset, block& from, std::size_t length) {
  flush_overlapping(offset, length);
  make_room(length);
  start(offset, {from.get(), length}).memory = std::move(from);
}

void write_behind::send_direct(std::uint64_t offset, std::span<const std::byte> from) {
  flush_overlapping(offset, from.size());
  try {
    while (!from.empty()) {
      const auto first = from.first(std::min(from.size(), flow_.piece()));
      make_room(first.size());
      start(offset, first);
      offset += first.size();
      from = from.subspan(first.size());
    }
    while (sent_ < pieces_.size()) {
      settle(pieces_[sent_].transfer);
      note_sent();
    }
  } catch (...) {
    // The caller gets its memory back all the same: each of these ends by its own deadline.
    for (std::size_t i = sent_; i < pieces_.size(); ++i) {
      if (pieces_[i].memory) continue;
      std::error_code known_already;
      pieces_[i].transfer.wait(known_already);
      if (!pieces_[i].transfer.done()) pieces_[i].transfer = request();
    }
    throw;
  }
}

write_behind::piece& write_behind::start(std::uint64_t offset, std::span<const std::byte> from) {
  const bool alone = pieces_.empty();
  piece begun;
  begun.offset = offset;
  begun.length = from.size();
  pieces_.reserve_one();
  try {
    begun.transfer = source_.start_write_at(offset, from);
    // Seen now, so that nothing is written behind the hole that this one leaves.
    if (begun.transfer.error()) settle(begun.transfer);
    unconfirmed_.add(offset, offset + from.size());
    begun.confirmation = source_.start_flush();
  } catch (...) {
    failed_ = true;
    throw;
  }
  begun.timed = !begun.confirmation.done();
  if (begun.timed) begun.begun = flow_.started(source_.now(), alone);
  in_flight_.take(from.size());
  bytes_ += from.size();
  pieces_.push_back(std::move(begun));
  return pieces_[pieces_.size() - 1];
}

void write_behind::settle(request& transfer) {
  try {
    transfer.wait();
  } catch (const error& failure) {
    if (failure.code() != errc::would_deadlock) failed_ = true;
    throw;
  }
}

/// Takes out the piece that was started first, when it is visible.
void write_behind::settle_first() {
  settle(pieces_.front().transfer);
  note_sent();
  settle(pieces_.front().confirmation);
  reap();
}

bool write_behind::wait_for_first() {
  if (pieces_.empty()) return false;
  settle_first();
  return true;
}

void write_behind::make_room(std::size_t length) {
  reap();
  pool_.collect_parked();
  while (!pieces_.empty() && (pieces_.size() >= depth_ || bytes_ + length > flow_.target())) {
    settle_first();
  }
  while (in_flight_.left() < length && (pool_.wait_for_parked() || wait_for_first())) {
  }
}

/// Takes back the memory of what has been sent.
void write_behind::note_sent() noexcept {
  while (sent_ < pieces_.size() && pieces_[sent_].transfer.done() &&
         !pieces_[sent_].transfer.error()) {
    pool_.give_back(std::move(pieces_[sent_].memory));
    ++sent_;
  }
}

/// Takes out what has become visible.
void write_behind::reap() noexcept {
  note_sent();
  flow_window::clock::time_point now;
  bool looked = false;
  while (sent_ > 0 && pieces_.front().confirmation.done() &&
         !pieces_.front().confirmation.error()) {
    const piece visible = pieces_.pop_front();
    --sent_;
    bytes_ -= visible.length;
    confirmed_end_ = std::max(confirmed_end_, visible.offset + visible.length);
    in_flight_.give_back(visible.length);
    flow_.arrived(visible.length);
    if (!visible.timed) continue;
    if (!std::exchange(looked, true)) now = source_.now();
    flow_.ended(visible.begun, visible.length, now);
  }
  if (looked) pool_.keep(flow_.size() + 2 * pool_.block_size());
}

void write_behind::check() {
  reap();
  if (!pieces_.empty()) {
    if (pieces_.front().confirmation.error()) settle(pieces_.front().confirmation);
    if (sent_ < pieces_.size() && pieces_[sent_].transfer.error()) settle(pieces_[sent_].transfer);
  }
  // Writes that had left this process may have been lost on their way: only a flush can tell.
  if (!unconfirmed_.empty() && source_.status()) flush();
}

void write_behind::flush() {
  while (!pieces_.empty()) settle_first();
  if (unconfirmed_.empty()) return;
  request flushed = source_.start_flush();
  settle(flushed);
  unconfirmed_.clear();
}

std::uint64_t write_behind::readable_end(std::uint64_t position, std::uint64_t end) {
  flush_overlapping(position, 1);
  return unconfirmed_.next(position, end);
}

/// Transfers may overtake each other: none may touch what an unfinished write is to change.
void write_behind::flush_overlapping(std::uint64_t offset, std::size_t length) {
  if (unconfirmed_.empty()) return;
  if (!source_.first_unconfirmed()) unconfirmed_.clear();
  if (unconfirmed_.overlaps(offset, offset + length) || unconfirmed_.count() > most_extents) {
    flush();
  }
}

std::uint64_t write_behind::rewind(std::uint64_t unsent) {
  reap();
  std::uint64_t first = unsent;
  const std::optional<std::uint64_t> unconfirmed = source_.first_unconfirmed();
  if (!pieces_.empty()) {
    // The source forgets a failure when a write is started behind it: the piece is remembered here.
    const piece& lost = pieces_.front();
    first = lost.offset;
    if (unconfirmed && *unconfirmed - first < lost.length) first = *unconfirmed;
  } else if (unconfirmed) {
    first = *unconfirmed;
  }
  source_.forget_writes(first);
  while (!pieces_.empty()) {
    piece lost = pieces_.pop_front();
    bytes_ -= lost.length;
    if (lost.memory) {
      pool_.park(std::move(lost.memory), std::move(lost.transfer), lost.length);
    } else {
      in_flight_.give_back(lost.length);
    }
  }
  sent_ = 0;
  unconfirmed_.clear();
  failed_ = false;
  return first;
}

}  // namespace ucx::detail
