// The writing side of a stream: its put area, and what was written and is not known to be visible.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/block_pool.hpp"
#include "engine/byte_budget.hpp"
#include "engine/stream_failure.hpp"
#include "engine/stream_source.hpp"
#include "engine/write_behind.hpp"
#include "engine/write_loss.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// Bytes gather in the put area, and go from there; what is as long as a buffer goes from the
/// caller's memory. The area keeps what was not sent while something else is done with the stream.
class writing_side {
 public:
  /// `copying`: from memory of devices.
  writing_side(stream_source& source, block_pool& pool, byte_budget& in_flight, std::size_t depth,
               const io_options& copying)
      : source_(source),
        pool_(pool),
        writes_(source.bytes(), pool, in_flight, pool.block_size(), depth),
        copying_(copying) {}
  writing_side(const writing_side&) = delete;
  writing_side& operator=(const writing_side&) = delete;

  /// Has the put area end at the position. REQUIRES: nothing was read ahead.
  void begin();
  /// Makes room in the put area.
  void open_area();
  /// Starts writing what is in the put area.
  void send_area();
  /// Writes as much of `from` as fits the source, and throws where that is not all.
  void write(std::span<const std::byte> from);
  /// The streambuf has filled the put area up to `next`.
  void enter(const char* next) noexcept {
    used_ = static_cast<std::size_t>(next - area_begin());
    source_.move_to(area_end());
    note_taken(begin_);
  }
  /// Where the streambuf may go on; nowhere without an area.
  char* area_next() const noexcept { return area_ ? area_begin() + used_ : nullptr; }
  char* area_limit() const noexcept { return area_ ? area_begin() + capacity() : nullptr; }

  /// Throws the failure of a write, if one is known. Waits for nothing.
  void check() { writes_.check(); }
  /// Waits until every write is visible: without what is in the put area.
  void flush() { writes_.flush(); }
  /// As flush(), and the source is as long as the writes made it.
  void make_all_visible() {
    flush();
    source_.note_visible();
  }
  /// Waits until the write that was started first is visible; returns whether there was one.
  bool wait_for_first() { return writes_.wait_for_first(); }
  /// Returns where bytes from `position` on stop being safe to read, at most `end`.
  std::uint64_t readable_end(std::uint64_t position, std::uint64_t end) {
    return writes_.readable_end(position, end);
  }
  const flow_window& flow() const noexcept { return writes_.flow(); }

  /// Returns whether a write failed, and not only a wait for it.
  bool failed() const noexcept { return writes_.failed(); }
  /// Forgets what was written and is not known to be visible, and goes back to where that begins.
  /// Forgets nothing if it throws.
  void rewind();
  /// Bytes that were to be written at the position are missing.
  void note_lost(const stream_failure& why) noexcept {
    if (source_.grows()) lost_.note_lost(source_.position(), why.code(), why.cause());
  }
  const write_loss& lost() const noexcept { return lost_; }

  void free_area() noexcept;

 private:
  char* area_begin() const noexcept { return reinterpret_cast<char*>(area_.get()); }
  std::uint64_t area_end() const noexcept { return begin_ + used_; }
  std::size_t capacity() const noexcept {
    return static_cast<std::size_t>(
        std::min<std::uint64_t>(area_.size(), source_.room_from(begin_)));
  }
  /// Bytes from `begin` up to the position were taken.
  void note_taken(std::uint64_t begin) noexcept {
    source_.note_written(source_.position());
    lost_.note_written(begin, source_.position());
  }
  void fill_area(std::span<const std::byte> from);
  void write_directly(std::span<const std::byte> from);
  void regain_source();

  stream_source& source_;
  block_pool& pool_;
  write_behind writes_;
  const io_options copying_;
  block area_;               // none: it was sent, or not made yet
  std::uint64_t begin_ = 0;  // where its bytes belong
  std::size_t used_ = 0;     // bytes in it that were not sent
  write_loss lost_;          // of a source that grows
};

}  // namespace ucx::detail
