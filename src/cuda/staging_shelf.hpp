// The idle staging buffers of a worker.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "cuda/staging_buffer.hpp"

namespace ucx::detail {

/// Gives out any number of buffers, of which only so much is pinned, and keeps no more than that
/// when they come back. REQUIRES: external synchronization.
class staging_shelf {
 public:
  /// Buffers are of the size of an answer's pieces or of a write's. They are smaller for little,
  /// and larger where more is asked for.
  staging_shelf(std::size_t most_pinned, std::size_t answer_piece, std::size_t write_piece)
      : account_(std::make_shared<staging_account>(most_pinned)),
        sizes_{little, answer_piece, write_piece} {}

  /// Returns a buffer of `size` bytes or more; nothing where there is no memory.
  staging_buffer take(std::size_t size) noexcept {
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      if (size > sizes_[i]) continue;
      if (idle_[i].empty()) return {sizes_[i], account_};
      staging_buffer taken = std::move(idle_[i].back());
      idle_[i].pop_back();
      idle_bytes_ -= taken.size();
      return taken;
    }
    return {size, account_};
  }
  void put_back(staging_buffer used) noexcept {
    const auto kind = std::find(sizes_.begin(), sizes_.end(), used.size());
    if (!used || kind == sizes_.end()) return;
    if (used.size() > account_->most_pinned() - idle_bytes_) return;
    try {
      idle_[static_cast<std::size_t>(kind - sizes_.begin())].push_back(std::move(used));
      idle_bytes_ += *kind;
    } catch (...) {  // out of memory for the list itself: the buffer is simply freed
    }
  }
  staging_account& account() const noexcept { return *account_; }

 private:
  static constexpr std::size_t little = std::size_t{64} << 10U;

  const std::shared_ptr<staging_account> account_;
  const std::array<std::size_t, 3> sizes_;
  std::array<std::vector<staging_buffer>, 3> idle_;
  std::size_t idle_bytes_ = 0;  // at most what may be pinned
};

}  // namespace ucx::detail
