#include "read_ahead.hpp"

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
    unit_ = std::min(pool_.block_size(), std::max(growth * unit_, wanted));
    window_ = std::min(depth_, 2 * window_);
    return;
  }
  asked_end_ = position;
  unit_ = std::min(pool_.block_size(), first_unit);
  window_ = 1;
}

void read_ahead::ask(std::uint64_t position, std::span<std::byte> into, std::uint64_t end) {
  if (into.empty() && pieces_.empty()) {
    ask_block(end);
  } else {
    ask_demanded(position, into, end);
  }
  if (!sequential_) return;
  // Where a read is over as soon as it is asked for, there is no time to fill: going ahead would
  // only add a copy.
  if (!pieces_.empty() && pieces_[pieces_.size() - 1].transfer.done()) return;
  try {
    while (pieces_.size() < window_ && asked_end_ < end) ask_block(end);
  } catch (const std::exception&) {
    // What the caller wants may still arrive. Whoever comes to need more asks again, and is told.
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
    if (rest.size() >= unit_ || tail_of_single_read || reaches_the_end) {
      ask_direct(rest.first(std::min(rest.size(), pool_.block_size())));
    } else {
      ask_block(end);
    }
  }
}

void read_ahead::ask_direct(std::span<std::byte> into) {
  pieces_.reserve_one();
  pieces_.push_back({asked_end_, into.size(), block(), source_.start_read_at(asked_end_, into)});
  asked_end_ += into.size();
}

void read_ahead::ask_block(std::uint64_t end) {
  pieces_.reserve_one();
  const std::size_t length =
      static_cast<std::size_t>(std::min<std::uint64_t>(unit_, end - asked_end_));
  block memory = pool_.take();
  request transfer;
  try {
    transfer = source_.start_read_at(asked_end_, {memory.get(), length});
  } catch (...) {
    pool_.give_back(std::move(memory));
    throw;
  }
  pieces_.push_back({asked_end_, length, std::move(memory), std::move(transfer)});
  asked_end_ += length;
}

read_ahead::piece read_ahead::take_first() {
  pieces_.front().transfer.wait();
  return pieces_.pop_front();
}

void read_ahead::give_up_first() noexcept {
  piece first = pieces_.pop_front();
  if (source_.abandons_reads_at_once()) {
    first.transfer = request();
    pool_.give_back(std::move(first.memory));
  } else if (first.memory) {
    pool_.park(std::move(first.memory), std::move(first.transfer));
  } else {
    std::error_code known_already;  // of the piece that failed first; the memory is the caller's
    first.transfer.wait(known_already);
  }
}

void read_ahead::drop() noexcept {
  while (!pieces_.empty()) give_up_first();
  asked_end_ = nowhere;
}

}  // namespace ucx::detail
