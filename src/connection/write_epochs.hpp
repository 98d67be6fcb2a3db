// Counts the unanswered writes of a connection, so that a flush waits for those before it only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace ucx::detail {

/// Writes belong to the epoch in which they start; a flush ends an epoch and waits for it.
class write_epochs {
 public:
  /// A write starts; returns its epoch.
  std::uint64_t begin() noexcept {
    ++unanswered_.back();
    return first_ + unanswered_.size() - 1;
  }
  /// A write of `epoch` was answered, or will never be.
  void end(std::uint64_t epoch) noexcept {
    --unanswered_[epoch - first_];
    while (unanswered_.size() > 1 && unanswered_.front() == 0) {
      unanswered_.erase(unanswered_.begin());
      ++first_;
    }
  }
  /// Ends the current epoch and returns it.
  std::uint64_t close() {
    if (unanswered_.size() == 1 && unanswered_.front() == 0) return first_++;
    unanswered_.push_back(0);
    return first_ + unanswered_.size() - 2;
  }
  /// Returns how many epochs are not settled, with the one that has not ended.
  std::size_t size() const noexcept { return unanswered_.size(); }
  /// Returns whether every write up to the end of `epoch` was answered.
  bool settled(std::uint64_t epoch) const noexcept { return epoch < first_; }

 private:
  std::uint64_t first_ = 0;
  std::vector<std::size_t> unanswered_ = {0};
};

}  // namespace ucx::detail
