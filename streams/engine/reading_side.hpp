// The reading side of a stream: its get area, and what was asked for ahead of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/block_pool.hpp"
#include "engine/byte_budget.hpp"
#include "engine/read_ahead.hpp"
#include "engine/source_end.hpp"
#include "engine/stream_source.hpp"
#include "engine/writing_side.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// Bytes that were written are not read before they are known to be visible. Each reading function
/// begins at the position, and moves it behind what it gave. It throws why it can not go on, and
/// returns false at the end of data.
///
/// States of the get area:
///
///     from       | to      | when
///     any        | lent    | the next bytes are read, and lie in this process: the source's own
///     any        | read    | the next bytes are read, and were moved here
///     lent, read | altered | the streambuf is about to change one, in memory of ours
///     any        | none    | something is written or flushed, or there may be less by now
///     lent       | none    | the source was lost
///     altered    | none    | the position is moved elsewhere
class reading_side {
 public:
  /// `copying`: to memory of devices.
  reading_side(stream_source& source, writing_side& written, block_pool& pool,
               byte_budget& in_flight, std::size_t depth, std::chrono::nanoseconds follow,
               const io_options& copying)
      : source_(source),
        written_(written),
        pool_(pool),
        in_flight_(in_flight),
        reads_(source.bytes(), pool, in_flight, pool.block_size(), depth),
        end_(source.bytes(), follow),
        copying_(copying) {}
  reading_side(const reading_side&) = delete;
  reading_side& operator=(const reading_side&) = delete;

  /// A call of the program's begins, which may try several times.
  void begin_call() noexcept { end_.begin(); }
  /// Begins, before each of the next three. REQUIRES: what was written is on its way.
  void begin();
  /// Has the get area hold the position.
  bool refill();
  /// Fills `into`.
  bool read(std::span<std::byte> into);
  /// Goes back by one byte, with the get area around it.
  bool step_back();
  /// Has the bytes of the get area in the stream's memory, for the streambuf to change.
  void alter();

  /// Where the streambuf may go on; nowhere where the get area is not at the position.
  char* area_begin() const noexcept { return reinterpret_cast<char*>(area_.bytes); }
  char* area_next() const noexcept {
    const bool is_there = area_.has != content::none && source_.position() >= area_.offset &&
                          source_.position() <= area_.end();
    return is_there ? area_begin() + (source_.position() - area_.offset) : nullptr;
  }
  char* area_end() const noexcept { return area_begin() + area_.length; }
  /// The streambuf has come to `next` in the get area.
  void enter(const char* next) noexcept {
    source_.move_to(area_.offset + static_cast<std::size_t>(next - area_begin()));
  }

  /// The position was moved.
  void moved() noexcept {
    if (area_.has == content::altered) drop_area();
  }
  /// A call failed: nothing that was asked for is of use.
  void drop_reads() noexcept { reads_.drop(); }
  /// The source may have other content from here on than was read so far.
  void drop() noexcept {
    reads_.drop();
    drop_area();
  }
  /// The source is lost, and will be had again.
  void leave_source() noexcept;
  void free_area() noexcept { area_ = area(); }

  /// The next read that comes to the end asks where it is.
  void forget_end() noexcept { end_.forget(); }
  /// There may be less than is known.
  void doubt_end() noexcept { end_.doubt(); }
  /// Returns whether the failure was met while waiting at the end, which had been well for a while.
  bool had_waited() noexcept { return end_.had_waited(); }
  const flow_window& flow() const noexcept { return reads_.flow(); }

 private:
  enum class content { none, lent, read, altered };
  struct area {
    block memory;                // none: the bytes are the source's own
    std::byte* bytes = nullptr;  // of `memory`, or where the source has them
    std::uint64_t offset = 0;
    std::size_t length = 0;
    content has = content::none;

    std::uint64_t end() const noexcept { return offset + length; }
    bool holds(std::uint64_t position) const noexcept {
      return position >= offset && position < end();
    }
  };

  bool look_behind_end();
  void look_at_end();
  bool is_at_end() { return source_.position() >= source_.size() && !look_behind_end(); }
  void fetch(std::span<std::byte> into);
  void fetch_in_place(std::span<std::byte> into);
  void make_room();
  void keep(read_ahead::piece&& arrived) noexcept;
  std::span<std::byte> copy_from_area(std::span<std::byte> into);
  void drop_area() noexcept;

  stream_source& source_;
  writing_side& written_;
  block_pool& pool_;
  byte_budget& in_flight_;
  read_ahead reads_;
  source_end end_;
  const io_options copying_;
  area area_;
};

}  // namespace ucx::detail
