#include "connection/write_tracker.hpp"

#include <algorithm>
#include <utility>

#include "connection/flush_operation.hpp"

namespace ucx::detail {

write_tracker::entry& write_tracker::at(std::uint64_t number) noexcept {
  return ring_[(head_ + (number - first_number_)) & (ring_.size() - 1)];
}

const write_tracker::entry& write_tracker::at(std::uint64_t number) const noexcept {
  return ring_[(head_ + (number - first_number_)) & (ring_.size() - 1)];
}

void write_tracker::grow() {
  std::vector<entry> larger(ring_.size() * 2);
  for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move(at(first_number_ + i));
  ring_ = std::move(larger);
  head_ = 0;
}

std::uint64_t write_tracker::begin(std::uint64_t offset, std::uint64_t length) {
  if (count_ == ring_.size()) grow();
  retry_from_.reset();
  const std::uint64_t number = first_number_ + count_++;
  at(number) = entry{offset, length};
  ++unsettled_;
  unconfirmed_bytes_ += length;
  return number;
}

void write_tracker::confirm(std::uint64_t number, std::uint64_t bytes) {
  if (forgotten(number)) return;
  entry& confirmed = at(number);
  if (confirmed.state != fate::open) return;
  const std::uint64_t counted = std::min(bytes, confirmed.length - confirmed.confirmed);
  confirmed.confirmed += counted;
  unconfirmed_bytes_ -= counted;
  if (confirmed.confirmed < confirmed.length) return;
  confirmed.state = fate::confirmed;
  if (observer_ != nullptr) observer_->confirmed(number, confirmed.offset, confirmed.length);
  pop_confirmed();
  settle_one();
}

void write_tracker::fail(std::uint64_t number, std::error_code why, std::string what) {
  if (forgotten(number)) return;
  entry& failed = at(number);
  if (failed.state != fate::open) return;
  failed.state = fate::failed;
  failed.failure = why;
  failed.what = std::move(what);
  if (observer_ != nullptr)
    observer_->failed(number, failed.offset, failed.length, why, failed.what);
  settle_one();
}

bool write_tracker::settled(std::uint64_t end) const noexcept {
  if (settled()) return true;
  for (std::uint64_t number = first_number_; number < end; ++number) {
    if (at(number).state == fate::open) return false;
  }
  return true;
}

void write_tracker::settle_one() {
  --unsettled_;
  // A flush that completes takes the failures of the writes before it; later flushes have the rest.
  while (flush_operation* waiting = waiting_.front()) {
    if (!settled(waiting->last_write())) return;
    waiting_.remove(*waiting);
    waiting->writes_settled();
  }
}

void write_tracker::pop_confirmed() noexcept {
  while (count_ > 0 && ring_[head_].state == fate::confirmed) {
    head_ = (head_ + 1) & (ring_.size() - 1);
    --count_;
    ++first_number_;
  }
}

void write_tracker::begin_unconfirmable(std::uint64_t offset, std::uint64_t length) {
  retry_from_.reset();
  if (!unconfirmable_begin_) unconfirmable_begin_ = offset;
  ++unconfirmable_writes_;
  unconfirmable_bytes_ += length;
  unconfirmed_bytes_ += length;
}

void write_tracker::flushed(std::uint64_t mark, std::error_code outcome) {
  if (outcome) {
    if (!flush_failure_) flush_failure_ = outcome;
    return;
  }
  // Writes that began after the flush stay unconfirmed, and with them the place where the first of
  // all began: too early rather than too late.
  if (mark != unconfirmable_writes_) return;
  // One that failed is told of first, with the place where it began.
  if (flush_failure_) return;
  unconfirmed_bytes_ -= std::exchange(unconfirmable_bytes_, 0);
  unconfirmable_begin_.reset();
}

std::error_code write_tracker::take_failure(std::uint64_t end) {
  std::error_code first = std::exchange(flush_failure_, std::error_code());
  failed_write_.clear();
  if (first) {
    retry_from_ = first_unconfirmed();
    unconfirmed_bytes_ -= std::exchange(unconfirmable_bytes_, 0);
    unconfirmable_begin_.reset();
  }
  while (count_ > 0 && first_number_ < end) {
    entry& oldest = ring_[head_];
    if (oldest.state == fate::failed && !first) {
      first = oldest.failure;
      failed_write_ = std::move(oldest.what);
      retry_from_ = oldest.offset + oldest.confirmed;
    }
    unconfirmed_bytes_ -= oldest.length - oldest.confirmed;
    head_ = (head_ + 1) & (ring_.size() - 1);
    --count_;
    ++first_number_;
  }
  pop_confirmed();
  return first;
}

std::optional<std::uint64_t> write_tracker::first_unconfirmed() const noexcept {
  if (retry_from_) return retry_from_;
  if (count_ > 0) {
    const entry& first = ring_[head_];
    return first.offset + first.confirmed;
  }
  return unconfirmable_begin_;
}

void write_tracker::add(flush_operation& waiting) noexcept { waiting_.push_back(waiting); }

void write_tracker::remove(flush_operation& waiting) noexcept {
  if (static_cast<list_hook<flush_tag>&>(waiting).linked()) waiting_.remove(waiting);
}

}  // namespace ucx::detail
