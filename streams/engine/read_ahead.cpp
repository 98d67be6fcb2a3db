#include "engine/read_ahead.hpp"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

namespace ucx::detail {

void read_ahead::begin(std::uint64_t position, std::span<std::byte> into) {
  if (!pieces_.empty() && position >= pieces_.front().offset && position < asked_end_) {
    while (pieces_.front().end() <= position) give_up_first();
  } else if (!pieces_.empty()) {
    drop();
  }
  pool_.collect_parked();
  adapt(position, into.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    piece& asked = pieces_[i];
    if (asked.end() > position + into.size()) break;
    if (asked.offset < position) continue;
    const std::size_t at = static_cast<std::size_t>(asked.offset - position);
    if (asked.transfer.rebind(into.subspan(at, asked.length))) {
      pool_.give_back(std::move(asked.memory));
    }
  }
}

void read_ahead::adapt(std::uint64_t position, std::size_t wanted) {
  sequential_ = !pieces_.empty() || position == asked_end_;
  if (sequential_) {
    scattered_ = 0;
    unit_ = std::max({growth * unit_, wanted, first_unit});
    ahead_ = std::min(flow_.most_pieces(), 2 * ahead_);
  } else {
    const bool nearby = position < begun_at_ + first_unit && begun_at_ < position + first_unit;
    scattered_ = nearby ? -patience : std::min(scattered_ + 1, few + 1);
    unit_ = scattered_ > few && wanted > 0 ? std::min(first_unit, wanted) : first_unit;
    asked_end_ = position;
    ahead_ = 1;
  }
  begun_at_ = position;
  wanted_ = wanted;
  unit_ = std::min(flow_.piece(), unit_);
}

void read_ahead::ask(std::uint64_t position, std::span<std::byte> into, std::uint64_t end) {
  unit_ = std::min(flow_.piece(), unit_);
  note_arrivals();
  if (into.empty() && pieces_.empty()) {
    ask_block(end);
  } else {
    ask_demanded(position, into, end);
  }
  if (!sequential_) return;
  // Where a read is over as soon as it is asked for, there is no time to fill: going ahead would
  // only add a copy.
  if (at_once_) return;
  try {
    const std::size_t most = std::min(ahead_, depth_);
    while (pieces_.size() < most && asked_end_ < end && has_room(next_length(end))) ask_block(end);
  } catch (const std::exception&) {
    // The bytes that the caller wants may still arrive. A later read that needs more asks again,
    // and is told.
  }
}

void read_ahead::ask_demanded(std::uint64_t position, std::span<std::byte> into,
                              std::uint64_t end) {
  const std::uint64_t wanted_end = position + into.size();
  while (asked_end_ < wanted_end && pieces_.size() < depth_) {
    const std::size_t at = static_cast<std::size_t>(asked_end_ - position);
    const std::span<std::byte> rest = into.subspan(at);
    const bool tail_of_single_read = !sequential_ && at != 0;
    const bool reaches_the_end = rest.size() >= first_unit && wanted_end == end;
    const bool direct = rest.size() >= unit_ || tail_of_single_read || reaches_the_end;
    const std::size_t length = direct ? std::min(rest.size(), flow_.piece()) : next_length(end);
    if (!pieces_.empty() && !has_room(length)) return;
    if (direct) {
      ask_direct(rest.first(length));
    } else {
      ask_block(end);
    }
  }
}

/// Returns whether so many bytes more may be in flight.
bool read_ahead::has_room(std::size_t length) const noexcept {
  return asked_bytes_ + length <= flow_.target() && length <= in_flight_.left();
}

/// Returns the length of the next piece into a block.
std::size_t read_ahead::next_length(std::uint64_t end) const noexcept {
  return static_cast<std::size_t>(std::min<std::uint64_t>(unit_, end - asked_end_));
}

void read_ahead::ask_direct(std::span<std::byte> into) {
  pieces_.reserve_one();
  ask_into(into, block());
}

void read_ahead::ask_block(std::uint64_t end) {
  pieces_.reserve_one();
  block memory = pool_.take(next_length(end));
  const std::span<std::byte> into(memory.get(), next_length(end));
  ask_into(into, std::move(memory));
}

/// Returns whether a read may keep the block that it goes into. Bytes that the caller may give
/// other memory are moved there by the source, which then is better without. A short read that is
/// given up would keep much for little.
bool read_ahead::is_kept(const block& memory, std::size_t length) const noexcept {
  return memory && length > wanted_ && length >= memory.size() / 4;
}

void read_ahead::ask_into(std::span<std::byte> into, block&& memory) {
  const bool alone = asked_bytes_ == 0;
  piece asked;
  asked.offset = asked_end_;
  asked.length = into.size();
  asked.memory = std::move(memory);
  const bool kept = is_kept(asked.memory, into.size());
  try {
    asked.transfer = kept ? source_.start_read_kept(asked_end_, into, asked.memory.keeper())
                          : source_.start_read_at(asked_end_, into);
  } catch (...) {
    // Pieces of a kept read may be in flight, without a request that tells when they have ended.
    kept ? pool_.discard(std::move(asked.memory)) : pool_.give_back(std::move(asked.memory));
    throw;
  }
  at_once_ = asked.transfer.done();
  asked.timed = !at_once_;
  if (asked.timed) asked.asked = flow_.started(source_.now(), alone);
  in_flight_.take(into.size());
  asked_bytes_ += into.size();
  asked_end_ += into.size();
  pieces_.push_back(std::move(asked));
}

/// Counts what has come, in the order in which it was asked for.
void read_ahead::note_arrivals() noexcept {
  while (arrived_ < pieces_.size() && pieces_[arrived_].transfer.done()) {
    flow_.arrived(pieces_[arrived_].length);
    ++arrived_;
  }
}

read_ahead::piece read_ahead::take_first() {
  pieces_.front().transfer.wait();
  note_arrivals();
  --arrived_;
  piece first = pieces_.pop_front();
  in_flight_.give_back(first.length);
  asked_bytes_ -= first.length;
  if (first.timed) {
    flow_.ended(first.asked, first.length, source_.now());
    pool_.keep(flow_.size() + 2 * pool_.block_size());
  }
  return first;
}

void read_ahead::give_up_first() noexcept {
  piece first = pieces_.pop_front();
  if (arrived_ > 0) --arrived_;
  asked_bytes_ -= first.length;
  if (first.memory) {
    pool_.park(std::move(first.memory), std::move(first.transfer), first.length);
    return;
  }
  in_flight_.give_back(first.length);
  if (source_.abandons_reads_at_once()) return;
  std::error_code known_already;  // of the piece that failed first; the memory is the caller's
  first.transfer.wait(known_already);
}

void read_ahead::drop() noexcept {
  while (!pieces_.empty()) give_up_first();
  asked_end_ = nowhere;
}

}  // namespace ucx::detail
