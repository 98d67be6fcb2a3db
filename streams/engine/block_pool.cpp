#include "engine/block_pool.hpp"

#include <algorithm>
#include <system_error>
#include <utility>

namespace ucx::detail {

block block_pool::take(std::size_t bytes) {
  const std::size_t size = bytes <= short_size_ ? short_size_ : block_size_;
  if (free_.empty()) collect_parked();
  const auto found = std::find_if(free_.rbegin(), free_.rend(),
                                  [size](const block& each) { return each.size() == size; });
  if (found == free_.rend()) return allocate(size);
  std::swap(*found, free_.back());
  block taken = std::move(free_.back());
  free_.pop_back();
  return taken;
}

block block_pool::allocate(std::size_t size) {
  const std::size_t most = in_flight_.bound() + 2 * block_size_;
  if (allocated_ + size > most) trim(most - size);
  // Room for every block in both lists, so that giving back and parking never allocate.
  free_.reserve(blocks_ + 1);
  parked_.reserve(blocks_ + 1);
  block made(size);
  ++blocks_;
  allocated_ += size;
  return made;
}

void block_pool::give_back(block&& unused) noexcept {
  if (unused) free_.push_back(std::move(unused));
}

void block_pool::discard(block&& failed) noexcept {
  if (!failed) return;
  allocated_ -= failed.size();
  --blocks_;
  failed = block();
}

void block_pool::take_back(block&& memory, const request& done) noexcept {
  done.error() ? discard(std::move(memory)) : give_back(std::move(memory));
}

void block_pool::keep(std::size_t bytes) noexcept {
  // A window that wavers does not cost an allocation each time.
  if (allocated_ > bytes + bytes / 4) trim(bytes);
}

void block_pool::trim(std::size_t bytes) noexcept {
  while (allocated_ > bytes && !free_.empty()) {
    allocated_ -= free_.back().size();
    --blocks_;
    free_.pop_back();
  }
}

void block_pool::park(block&& in_use, request&& transfer, std::size_t bytes) noexcept {
  if (transfer.done()) {
    in_flight_.give_back(bytes);
    return take_back(std::move(in_use), transfer);
  }
  parked_.push_back({std::move(in_use), std::move(transfer), bytes});
}

bool block_pool::wait_for_parked() {
  if (parked_.empty()) return false;
  std::error_code outcome;
  parked_.front().transfer.wait(outcome);
  // How it ended does not matter, but only that it did.
  if (!parked_.front().transfer.done()) parked_.front().transfer.wait();
  collect_parked();
  return true;
}

void block_pool::collect_parked() noexcept {
  // The first is the one that was started first, as far as it goes: that one is waited for.
  const auto ended = std::remove_if(parked_.begin(), parked_.end(), [this](parked_block& parked) {
    if (!parked.transfer.done()) return false;
    in_flight_.give_back(parked.bytes);
    take_back(std::move(parked.memory), parked.transfer);
    return true;
  });
  parked_.erase(ended, parked_.end());
}

void block_pool::release(bool give_up) noexcept {
  for (parked_block& parked : parked_) {
    std::error_code whatever;
    if (!give_up) parked.transfer.wait(whatever);
    parked.transfer = request();
    in_flight_.give_back(parked.bytes);
    allocated_ -= parked.memory.size();
    --blocks_;
  }
  parked_.clear();
  trim(0);
}

}  // namespace ucx::detail
