// What a stream does between its get and put areas and its source.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <ios>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "engine/block_pool.hpp"
#include "engine/byte_budget.hpp"
#include "engine/byte_source.hpp"
#include "engine/read_ahead.hpp"
#include "engine/source_end.hpp"
#include "engine/write_behind.hpp"
#include "engine/write_loss.hpp"
#include "ucx/io_options.hpp"
#include "ucx/stream_options.hpp"
#include "ucx/stream_statistics.hpp"

namespace ucx::detail {

/// The state of one stream: one position, and the areas around it. It stays where it is while the
/// streambuf in front of it moves.
/// The streambuf advances inside the areas by itself: before each other call it tells by `enter()`
/// how far it came, and after it shows `current_areas()`. No call throws: one that fails says so,
/// `error()` tells the cause, and `throw_error()` throws it.
class stream_engine {
 public:
  struct areas {
    char* get_begin = nullptr;
    char* get_next = nullptr;
    char* get_end = nullptr;
    char* put_next = nullptr;
    char* put_end = nullptr;
  };
  enum class outcome { done, end_of_data, failed };
  /// Where a seek may go: up to the end, or, as in a file, to any offset. There is nothing to read
  /// beyond the end, and no room to write.
  enum class seek_limit { end, none };

  /// Returns why no stream can have these options; nothing where one can.
  static std::string why_not(const stream_options& options);

  /// REQUIRES: `why_not(options)` is empty.
  stream_engine(std::unique_ptr<byte_source> source, std::ios_base::openmode mode,
                const stream_options& options, seek_limit limit = seek_limit::end);
  stream_engine(const stream_engine&) = delete;
  stream_engine& operator=(const stream_engine&) = delete;
  ~stream_engine() { close(ending::destroyed); }

  bool is_open() const noexcept { return source_ != nullptr; }
  std::error_code error() const noexcept { return error_; }
  stream_statistics statistics() const noexcept;
  /// Throws what `error()` tells, as a `ucx::error`. REQUIRES: a call failed.
  [[noreturn]] void throw_error() const;
  /// Returns what that exception says. REQUIRES: a call failed.
  std::string error_text() const;

  void enter(const char* get_next, const char* put_next) noexcept;
  areas current_areas() const noexcept;

  /// Makes the get area begin at the position, or before it.
  outcome refill() noexcept;
  /// Moves bytes from the position on to `into`; fewer than asked for at the end of data. A failure
  /// moves nothing: the position is what it was.
  outcome read(std::span<std::byte> into, std::size_t& count) noexcept;
  /// Goes back by one byte, with the get area around it.
  outcome step_back() noexcept;
  /// The streambuf is about to change a byte of the get area, which is not what the source has: it
  /// may only where this has succeeded, in the areas that are current then.
  outcome alter_get_area() noexcept;
  /// Returns how many bytes are left to read, or -1.
  std::int64_t remaining() noexcept;

  /// Makes the put area begin at the position, with room in it.
  outcome make_room() noexcept;
  /// Starts writing what is in the put area.
  outcome write_out() noexcept;
  /// Writes `from` at the position, and returns how much of it was taken.
  std::size_t write(std::span<const std::byte> from) noexcept;

  /// Makes everything written visible at the source, and drops what was read ahead.
  outcome sync() noexcept;

  std::uint64_t position() const noexcept { return position_; }
  /// Moves the position to `offset` from `base`, or fails and leaves it. Touches nothing else.
  outcome seek(std::int64_t offset, std::ios_base::seekdir base) noexcept;

  enum class ending {
    closed,     ///< Somebody asked for it.
    destroyed,  ///< Nobody did.
  };
  /// Syncs, has what was written appear, and lets go of the source. Returns the failure of that;
  /// nothing when closed already. Nothing new appears where bytes that were written are missing, or
  /// where the stream is destroyed by an exception that was not there when it was opened.
  std::error_code close(ending how = ending::closed) noexcept;

 private:
  enum class state { idle, reading, writing };
  struct area {
    block memory;                // none: the bytes are the source's own
    std::byte* bytes = nullptr;  // of `memory`, or where the source has them
    std::uint64_t offset = 0;
    std::size_t length = 0;

    std::uint64_t end() const noexcept { return offset + length; }
    bool holds(std::uint64_t position) const noexcept {
      return position >= offset && position < end();
    }
    char* begin() const noexcept { return reinterpret_cast<char*>(bytes); }
  };

  template <class Action>
  outcome attempt(Action&& action) noexcept {
    try {
      const outcome ended = action();
      error_.clear();
      failure_ = nullptr;
      return ended;
    } catch (...) {
      note_failure();
      return outcome::failed;
    }
  }
  /// The same, again and again as long as the source is lost and can be had back.
  template <class Action>
  outcome attempt_to_read(Action&& action) noexcept {
    // A source that is lost again before a byte came is not worth more attempts than these.
    constexpr int most_in_vain = 3;
    int in_vain = 0;
    gave_up_ = false;
    end_.begin();
    for (std::uint64_t reached = position_;;) {
      const outcome ended = attempt(action);
      if (ended != outcome::failed) return ended;
      reads_.drop();
      const bool served = std::exchange(reached, position_) != position_ || waited_well();
      in_vain = served ? 0 : in_vain + 1;
      if (in_vain > most_in_vain || !reopen()) return outcome::failed;
    }
  }
  bool waited_well() noexcept;
  bool reopen() noexcept;
  bool regain_source();
  /// REQUIRES: an exception is being handled.
  void note_failure() noexcept;
  void note_gone();
  void require(std::ios_base::openmode wanted, std::string_view what) const;
  void check_place(std::span<const std::byte> bytes) const;
  [[noreturn]] void refuse(std::error_code why, std::string_view what) const;

  bool is_readable() const noexcept { return (mode_ & std::ios_base::in) != 0; }
  /// Returns whether it is worth an attempt: what is closed says so by itself.
  bool may_be_read() const noexcept { return is_readable() || !is_open(); }
  outcome refuse_to_read() noexcept;
  void begin_reading();
  bool look_behind_end();
  void look_at_end();
  void take_size(std::uint64_t now);
  void make_room_to_read();
  void read_beyond_get_area(std::span<std::byte> into);
  void look_in_place(std::span<std::byte> into);
  void keep_in_get_area(read_ahead::piece&& arrived) noexcept;
  std::span<std::byte> copy_from_get_area(std::span<std::byte> into);
  void drop_get_area() noexcept;

  /// Returns how many bytes the source has from `position` on.
  std::uint64_t left_from(std::uint64_t position) const noexcept {
    return position < size_ ? size_ - position : 0;
  }
  /// Returns how many bytes may be written from `position` on.
  std::uint64_t room_from(std::uint64_t position) const noexcept {
    return position < limit_ ? limit_ - position : 0;
  }
  /// Bytes from `begin` up to the position were taken.
  void note_taken(std::uint64_t begin) noexcept;
  /// Bytes that were to be written at the position are missing.
  void note_lost() noexcept;
  void make_all_visible();
  std::size_t put_capacity() const noexcept;
  void begin_writing();
  void open_put_area();
  void send_put_area();
  void fill_put_area(std::span<const std::byte> from);
  void write_directly(std::span<const std::byte> from);
  std::uint64_t target(std::int64_t offset, std::ios_base::seekdir base) const;

  std::unique_ptr<byte_source> source_;
  const std::ios_base::openmode mode_;
  const seek_limit seek_limit_;
  std::uint64_t size_;          // with what was written and is not visible yet
  const std::uint64_t limit_;   // so long it may become
  std::uint64_t visible_size_;  // what it was when everything was visible
  const bool grows_;
  byte_budget in_flight_;
  block_pool pool_;
  read_ahead reads_;
  write_behind writes_;
  source_end end_;

  state state_ = state::idle;  // idle: the areas are hidden, but kept
  const io_options copying_;   // from and to memory of devices
  std::uint64_t position_ = 0;
  area get_;
  bool get_altered_ = false;
  area put_;  // length: what is in it and was not sent

  write_loss lost_;       // of a source that grows
  const int exceptions_;  // that were on their way when it was made

  bool gave_up_ = false;  // to have the source back, as long as the call lasts
  std::error_code error_;
  bool told_of_writes_ = false;  // error_ is what happened to them
  std::exception_ptr failure_;   // what error_ was made of, where that has a text
};

}  // namespace ucx::detail
