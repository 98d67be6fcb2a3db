#include "engine/laned_source.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {

laned_source::laned_source(std::unique_ptr<byte_source> first,
                           std::vector<std::unique_ptr<byte_source>> lanes)
    : first_(std::move(first)) {
  lanes_.reserve(lanes.size());
  for (std::unique_ptr<byte_source>& each : lanes) {
    lanes_.push_back({std::move(each), std::make_shared<std::atomic<std::size_t>>(0)});
  }
}

/// The last user of a lane closes its connection, which waits for the server, within a bound. The
/// lanes are closed at the same time, so a server that is stopped or gone is waited for once.
laned_source::~laned_source() {
  for (lane& each : lanes_) {
    try {
      each.closing = std::thread([closed = std::move(each.source)]() mutable { closed.reset(); });
    } catch (const std::exception&) {
      each.source.reset();  // no thread is to be had, or no memory for one
    }
  }
  first_.reset();
  for (lane& each : lanes_) {
    if (each.closing.joinable()) each.closing.join();
  }
}

/// Returns the lane for bytes up to `end`; nothing where none reaches so far.
laned_source::lane* laned_source::choose(std::uint64_t end) noexcept {
  lane* best = nullptr;
  std::size_t least = 0;
  std::size_t next = turn_;
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const std::size_t at = (turn_ + i) % lanes_.size();
    lane& each = lanes_[at];
    const std::size_t has = each.outstanding->load(std::memory_order_relaxed);
    if (each.source->size() < end || (best != nullptr && has >= least)) continue;
    best = &each;
    least = has;
    next = at + 1;
  }
  turn_ = next % lanes_.size();
  return best;
}

request laned_source::start_read_at(std::uint64_t offset, std::span<std::byte> into) {
  // A client that was closed is closed for what was opened through it.
  if (const std::error_code ended = first_->status())
    throw error(ended, "reading " + description());
  lane* const chosen = choose(offset + into.size());
  if (chosen == nullptr) return first_->start_read_at(offset, into);
  request started = chosen->source->start_read_at(offset, into);
  if (started.done()) return started;
  started.then([left = chosen->outstanding, length = into.size()](std::error_code) {
    left->fetch_sub(length, std::memory_order_relaxed);
  });
  // Behind that, which may throw and then counts nothing. The read may have ended by now: only this
  // thread looks at the sum.
  chosen->outstanding->fetch_add(into.size(), std::memory_order_relaxed);
  return started;
}

bool laned_source::abandons_reads_at_once() const noexcept {
  return first_->abandons_reads_at_once() &&
         std::all_of(lanes_.begin(), lanes_.end(),
                     [](const lane& each) { return each.source->abandons_reads_at_once(); });
}

std::error_code laned_source::status() const noexcept {
  std::error_code told = first_->status();
  for (const lane& each : lanes_) {
    if (!told) told = each.source->status();
  }
  return told;
}

}  // namespace ucx::detail
