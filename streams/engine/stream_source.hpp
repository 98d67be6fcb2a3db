// The source of one stream, with the position in it: what reading and writing both know.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <ios>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/byte_source.hpp"
#include "ucx/context.hpp"

namespace ucx::detail {

/// The source that a stream was opened over, and the mode. It also knows how long the source is
/// with what was written, and the one position that both directions have.
class stream_source {
 public:
  stream_source(std::unique_ptr<byte_source> source, std::ios_base::openmode mode)
      : source_(std::move(source)),
        mode_(mode),
        size_(addressable(source_->size())),
        limit_(addressable(source_->limit())),
        visible_size_(size_),
        grows_(limit_ > size_) {}
  stream_source(const stream_source&) = delete;
  stream_source& operator=(const stream_source&) = delete;

  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  bool is_open() const noexcept { return source_ != nullptr; }
  void close() noexcept { source_.reset(); }
  /// REQUIRES: is_open().
  byte_source& bytes() const noexcept { return *source_; }

  /// Returns whether it was opened with one of these.
  bool is_for(std::ios_base::openmode any) const noexcept { return (mode_ & any) != 0; }
  /// Throws why it can not be used, or not for `wanted`; `what` is the beginning of the text.
  void require(std::ios_base::openmode wanted, std::string_view what) const;
  /// Throws where a part of `bytes` is a device's, and another is not.
  void check_place(std::span<const std::byte> bytes) const;
  [[noreturn]] void refuse(std::error_code why, std::string_view what) const;

  std::uint64_t position() const noexcept { return position_; }
  void move_to(std::uint64_t position) noexcept { position_ = position; }
  void advance(std::uint64_t bytes) noexcept { position_ += bytes; }

  /// Returns how long it is, with what was written and is not visible yet.
  std::uint64_t size() const noexcept { return size_; }
  /// Returns how long it was when everything was visible.
  std::uint64_t visible_size() const noexcept { return visible_size_; }
  /// Returns how long it may become.
  std::uint64_t limit() const noexcept { return limit_; }
  bool grows() const noexcept { return grows_; }
  /// Returns how many bytes it has from the position on.
  std::uint64_t left() const noexcept { return position_ < size_ ? size_ - position_ : 0; }
  /// Returns how many bytes may be written from `begin` on.
  std::uint64_t room_from(std::uint64_t begin) const noexcept {
    return begin < limit_ ? limit_ - begin : 0;
  }
  /// So long it is now, and all of it is visible.
  void take_size(std::uint64_t now) noexcept { size_ = visible_size_ = addressable(now); }
  /// A write up to `end` makes it longer, where it is not so long.
  void note_written(std::uint64_t end) noexcept { size_ = std::max(size_, end); }
  void note_visible() noexcept { visible_size_ = size_; }
  /// Missing writes make it no longer: up to `seen` it was seen to be visible.
  void shrink_to(std::uint64_t seen) noexcept { size_ = std::max(visible_size_, seen); }

  /// A call of the program's begins.
  void begin_call() noexcept { gave_up_ = false; }
  /// Returns whether it is lost, and may be had back.
  bool is_lost() const noexcept {
    return source_ && source_->recovers() && static_cast<bool>(source_->status());
  }
  /// Returns whether it was tried in vain in this call to have it back.
  bool gave_up() const noexcept { return gave_up_; }
  /// Returns whether it was lost, and is there again. Throws why it can not be had.
  bool regain();

 private:
  /// Positions are signed; no source is larger than they can say.
  static std::uint64_t addressable(std::uint64_t size) noexcept {
    return std::min<std::uint64_t>(size, std::numeric_limits<std::int64_t>::max());
  }

  const process_stamp made_;
  std::unique_ptr<byte_source> source_;
  const std::ios_base::openmode mode_;
  std::uint64_t position_ = 0;
  std::uint64_t size_;
  const std::uint64_t limit_;
  std::uint64_t visible_size_;
  const bool grows_;
  bool gave_up_ = false;
};

}  // namespace ucx::detail
