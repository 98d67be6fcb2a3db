#include "write_behind.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {

void write_behind::send(std::uint64_t offset, block& from, std::size_t length) {
  pieces_.reserve_one();
  flush_overlapping(offset, length);
  make_room();
  request transfer = start(offset, {from.get(), length});
  pieces_.push_back({std::move(from), std::move(transfer)});
}

void write_behind::send_direct(std::uint64_t offset, std::span<const std::byte> from) {
  flush_overlapping(offset, from.size());
  try {
    while (!from.empty()) {
      const auto first = from.first(std::min(from.size(), pool_.block_size()));
      directs_.reserve_one();
      make_room();
      directs_.push_back(start(offset, first));
      offset += first.size();
      from = from.subspan(first.size());
    }
    while (!directs_.empty()) settle_first();
  } catch (...) {
    // The caller gets its memory back all the same: each of these ends by its own deadline.
    while (!directs_.empty()) {
      std::error_code known_already;
      directs_.pop_front().wait(known_already);
    }
    throw;
  }
}

request write_behind::start(std::uint64_t offset, std::span<const std::byte> from) {
  request started;
  try {
    started = source_.start_write_at(offset, from);
  } catch (...) {
    failed_ = true;
    throw;
  }
  // Seen now, so that nothing is written behind the hole that this one leaves.
  if (started.error()) settle(started);
  unconfirmed_.add(offset, offset + from.size());
  return started;
}

void write_behind::settle(request& transfer) {
  try {
    transfer.wait();
  } catch (const error& failure) {
    if (failure.code() != errc::would_deadlock) failed_ = true;
    throw;
  }
}

/// Takes out the piece that was started first, when it has ended.
void write_behind::settle_first() {
  if (pieces_.empty()) {
    settle(directs_.front());
    directs_.drop_front();
    return;
  }
  settle(pieces_.front().transfer);
  pool_.give_back(std::move(pieces_.pop_front().memory));
}

void write_behind::make_room() {
  reap();
  while (pieces_.size() + directs_.size() >= depth_) settle_first();
}

void write_behind::reap() noexcept {
  while (!pieces_.empty() && pieces_.front().transfer.done() && !pieces_.front().transfer.error()) {
    pool_.give_back(std::move(pieces_.pop_front().memory));
  }
}

void write_behind::check() {
  reap();
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].transfer.error()) settle(pieces_[i].transfer);
  }
  // What had left this process may have been lost on its way: only a flush can tell.
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
  const std::uint64_t first = source_.first_unconfirmed().value_or(unsent);
  source_.forget_writes();
  while (!pieces_.empty()) {
    piece lost = pieces_.pop_front();
    pool_.park(std::move(lost.memory), std::move(lost.transfer));
  }
  unconfirmed_.clear();
  failed_ = false;
  return first;
}

}  // namespace ucx::detail
