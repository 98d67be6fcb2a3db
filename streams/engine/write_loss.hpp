// Bytes that were written to a stream and are missing from its source.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <optional>
#include <system_error>
#include <utility>

namespace ucx::detail {

/// Remembers where bytes are missing, and why, until the program has written there again. The
/// program was told where that is, and goes on from there. A file that misses bytes gets no name.
class write_loss {
 public:
  /// Bytes that were to be written at `position` are missing; of several causes the first counts.
  void note_lost(std::uint64_t position, std::error_code why, std::exception_ptr failure) noexcept {
    if (!first_) first_.emplace(loss{position, why, std::move(failure)});
    first_->from = std::min(first_->from, position);
  }
  void note_written(std::uint64_t begin, std::uint64_t end) noexcept {
    if (first_ && begin <= first_->from && end > first_->from) first_.reset();
  }

  explicit operator bool() const noexcept { return first_.has_value(); }
  // REQUIRES: something is lost.
  std::error_code why() const noexcept { return first_->why; }
  const std::exception_ptr& failure() const noexcept { return first_->failure; }

 private:
  struct loss {
    std::uint64_t from;
    std::error_code why;
    std::exception_ptr failure;
  };
  std::optional<loss> first_;
};

}  // namespace ucx::detail
