// Moves the bytes of a stream between its get and put areas and its source.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ios>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "engine/block_pool.hpp"
#include "engine/byte_budget.hpp"
#include "engine/byte_source.hpp"
#include "engine/reading_side.hpp"
#include "engine/stream_failure.hpp"
#include "engine/stream_source.hpp"
#include "engine/writing_side.hpp"
#include "ucx/stream_options.hpp"

namespace ucx::detail {

/// The state of one stream: one position, and the areas around it. It stays where it is while the
/// streambuf in front of it moves.
/// The streambuf advances inside the areas by itself: before each other call it tells by `enter()`
/// how far it came, and after it shows `current_areas()`. No call throws: one that fails says so,
/// `error()` tells the cause, and `throw_error()` throws it.
///
/// Which area is shown; the other one, and both while idle, may have bytes all the same:
///
///     from          | to      | when
///     idle, writing | reading | a call reads: what was written is on its way
///     idle, reading | writing | a call writes: what was read is dropped
///     any           | idle    | the position was moved, a call failed, or it was closed
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

  bool is_open() const noexcept { return source_.is_open(); }
  bool is_inherited() const noexcept { return source_.is_inherited(); }
  std::error_code error() const noexcept { return failure_.code(); }
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
  /// The streambuf is about to change a byte of the get area, which then differs from the source.
  /// It may only where this has succeeded, in the areas that are current then.
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

  std::uint64_t position() const noexcept { return source_.position(); }
  /// Moves the position to `offset` from `base`, or fails and leaves it. Touches nothing else.
  outcome seek(std::int64_t offset, std::ios_base::seekdir base) noexcept;

  enum class ending {
    closed,     ///< The program asked for it.
    destroyed,  ///< The program did not.
  };
  /// Syncs, has what was written appear, and lets go of the source. Returns the failure of that;
  /// nothing when closed already. Nothing new appears where bytes that were written are missing.
  /// Nor does it where the stream is destroyed by an exception that was not there when it was
  /// opened.
  std::error_code close(ending how = ending::closed) noexcept;

 private:
  enum class state { idle, reading, writing };

  template <class Action>
  outcome attempt(Action&& action) noexcept {
    try {
      const outcome ended = action();
      failure_.clear();
      return ended;
    } catch (...) {
      note_failure();
      return outcome::failed;
    }
  }
  /// As attempt(), again and again as long as the source is lost and can be had back.
  template <class Action>
  outcome attempt_to_read(Action&& action) noexcept {
    // A source that is lost again before a byte came is not worth more attempts than these.
    constexpr int most_in_vain = 3;
    int in_vain = 0;
    source_.begin_call();
    reading_.begin_call();
    for (std::uint64_t reached = source_.position();;) {
      const outcome ended = attempt(action);
      if (ended != outcome::failed) return ended;
      reading_.drop_reads();
      const bool served =
          std::exchange(reached, source_.position()) != source_.position() || waited_well();
      in_vain = served ? 0 : in_vain + 1;
      if (in_vain > most_in_vain || !reopen()) return outcome::failed;
    }
  }
  bool waited_well() noexcept;
  bool reopen() noexcept;
  /// REQUIRES: an exception is being handled.
  void note_failure() noexcept;
  void tell_gone() noexcept;

  /// Returns whether it is worth an attempt: what is closed says so by itself.
  bool may_be_read() const noexcept { return source_.is_for(std::ios_base::in) || !is_open(); }
  outcome refuse_to_read() noexcept;
  void begin_reading();
  void begin_writing();
  std::uint64_t target(std::int64_t offset, std::ios_base::seekdir base) const;

  stream_source source_;
  const seek_limit seek_limit_;
  byte_budget in_flight_;
  block_pool pool_;
  writing_side writing_;
  reading_side reading_;
  state state_ = state::idle;
  stream_failure failure_;
  const int exceptions_;  // that were on their way when it was made
};

}  // namespace ucx::detail
