#include "block_pool.hpp"

#include <system_error>
#include <utility>

namespace ucx::detail {

block block_pool::take() {
  if (free_.empty() && !parked_.empty()) {
    collect_parked();
    if (free_.empty() && allocated_ >= most_blocks_) {
      std::error_code whatever;
      parked_.front().transfer.wait(whatever);
      collect_parked();
    }
  }
  if (free_.empty()) return allocate();
  block taken = std::move(free_.back());
  free_.pop_back();
  return taken;
}

block block_pool::allocate() {
  // Room for every block in both lists, so that giving back and parking never allocate.
  free_.reserve(allocated_ + 1);
  parked_.reserve(allocated_ + 1);
  block made(static_cast<std::byte*>(::operator new(block_size_, block_alignment)));
  ++allocated_;
  return made;
}

void block_pool::give_back(block&& unused) noexcept {
  if (unused) free_.push_back(std::move(unused));
}

void block_pool::park(block&& in_use, request&& transfer) noexcept {
  if (transfer.done()) return give_back(std::move(in_use));
  parked_.push_back({std::move(in_use), std::move(transfer)});
}

void block_pool::release() noexcept {
  for (parked_block& parked : parked_) {
    std::error_code whatever;
    parked.transfer.wait(whatever);
  }
  parked_.clear();
  free_.clear();
}

void block_pool::collect_parked() noexcept {
  for (std::size_t i = parked_.size(); i-- > 0;) {
    if (!parked_[i].transfer.done()) continue;
    give_back(std::move(parked_[i].memory));
    if (i + 1 != parked_.size()) parked_[i] = std::move(parked_.back());
    parked_.pop_back();
  }
}

}  // namespace ucx::detail
