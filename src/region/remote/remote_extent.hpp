// How long a peer's region is, and what is in it.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <system_error>

#include "ucx/content_digest.hpp"

namespace ucx::detail {

/// The extent of a region, as its owner gave it at the opening, and as it was seen since. Under the
/// worker's lock, but for `size()`, `limit()` and `can_refresh_size()`.
class remote_extent {
 public:
  remote_extent(std::uint64_t size, const content_id& content) noexcept
      : size_(size), content_(content) {}

  /// Returns how many bytes there are to read: more than at first, once something was written
  /// behind them.
  std::uint64_t size() const noexcept { return size_; }
  /// Returns where writes have to end.
  std::uint64_t limit() const noexcept { return std::max<std::uint64_t>(size_, limit_); }
  /// Returns what was there when it was opened, or measured.
  const content_id& content() const noexcept { return content_; }
  /// Returns whether its server tells how long it is by now. Never changes once it is opened.
  bool measurable() const noexcept { return measurable_; }
  /// Returns why it can not be committed any more: a write of it is missing.
  std::error_code spoiled() const noexcept { return spoiled_; }

  // Facts that become known behind its opening.
  /// Writes may make it longer.
  void grow_to(std::uint64_t limit) noexcept { limit_ = limit; }
  /// It is a file: of that identity, where that is not 0.
  void is_file(std::uint64_t identity, std::uint64_t generation, bool measurable) noexcept {
    if (identity != 0) content_ = {identity, generation};
    measurable_ = measurable;
  }

  // Later changes.
  /// It was seen to have so many bytes; there are never fewer to read, but some may be gone.
  void measured(std::uint64_t size, std::uint64_t generation) noexcept {
    size_ = std::max<std::uint64_t>(size_, size);
    content_.generation = generation;
  }
  /// The owner has given it another size.
  void resized(std::uint64_t size) noexcept { size_ = size; }
  /// A write that ends there was begun.
  void written_to(std::uint64_t end) noexcept {
    if (limit_ > 0) size_ = std::max<std::uint64_t>(size_, end);
  }
  void spoil(std::error_code why) noexcept { spoiled_ = why; }

 private:
  std::atomic<std::uint64_t> size_;
  std::uint64_t limit_ = 0;  // 0: it does not grow
  content_id content_;
  bool measurable_ = false;
  std::error_code spoiled_;
};

}  // namespace ucx::detail
