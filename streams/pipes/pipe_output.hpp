// The writing end of a pipe: to one reader, or the same bytes to several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "pipes/pipe_end.hpp"
#include "pipes/pipe_path.hpp"
#include "pipes/pipe_reader.hpp"
#include "pipes/pipe_slots.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::detail {

/// Bytes gather in a slot, which goes as one message when it is full, or flushed; meanwhile another
/// slot is filled. Bytes as long as a slot go from the caller's memory, unless they would wait
/// there until a reader reads. RMA hardware of readers fetches longer messages from there. Where a
/// reader offers slots in its memory, they are said to be filled instead. They are free again when
/// it has taken what was there. No reader is sent more than its window without having taken it.
///
///     from   | to     | when
///     open   | ending | the end is being said to every reader
///     ending | closed | every reader's process has everything
///     any    | closed | it was aborted, or ending failed
class pipe_output {
 public:
  pipe_output(pipe_path& path, const pipe_options& options);
  ~pipe_output();
  pipe_output(const pipe_output&) = delete;
  pipe_output& operator=(const pipe_output&) = delete;

  // Where no call waits, functions that wait may fail with `would_block` (`would_wait()`). Nothing
  // has changed then, and they are to be called again when the end is woken.

  /// Waits until every reader has said hello, `options.connect_timeout` at most. Comes before all
  /// else. Returns whether there is a reader.
  bool open();
  /// An operation of the program begins: all that waits in it has `options.timeout` together.
  void begin() noexcept { waiter_.begin(options_.timeout); }

  /// Returns where bytes may be put: nowhere before `ensure_area`.
  std::span<std::byte> area() const noexcept { return slots_.area(); }
  /// Waits for a place; returns whether there is one.
  bool ensure_area();
  /// Sends the first `used` bytes of `area()`, and makes room for more. Returns whether it could.
  bool flush(std::size_t used);
  /// Sends `bytes`, and returns how many of them were sent, when their memory can be used again.
  std::size_t send(std::span<const std::byte> bytes);
  /// Returns how many of so many bytes go by `send`: those that fill messages. The others go by
  /// `area()`.
  std::size_t sent_of(std::size_t count) const noexcept;

  /// Says that this was all, and returns when every reader's process has everything; or gives up.
  /// REQUIRES: what was put is flushed.    Errors: broken_pipe, those of `flush`.
  std::error_code close();
  /// Returns whether what failed is to be asked again.
  bool would_wait() const noexcept { return !failure_ && passing_ == errc::would_block; }
  void abort(std::error_code why) noexcept;

  bool is_closed() const noexcept { return stage_ == stage::closed; }
  /// Returns whether it can not go on.
  bool is_broken() const noexcept { return is_closed() || failure_; }
  std::uint64_t sent() const noexcept { return sent_; }
  /// Returns how many bytes every reader's program has taken, as far as it has told. Drives
  /// nothing.
  std::uint64_t taken();
  /// Returns how many readers are there; after a close that went well how many have had everything.
  std::size_t readers() const noexcept;
  /// Returns whether long messages go into memory of the reader's.
  bool uses_places() const noexcept { return slots_.uses_places(); }
  std::error_code error() const noexcept { return failure_ ? failure_.code() : passing_; }
  std::string error_text() const;

 private:
  enum class stage { open, ending, closed };

  std::size_t present() const noexcept;
  void look();
  void look(pipe_reader& at);
  void note_end(const pipe_reader& gone);
  void miss(const pipe_reader& gone);
  bool goes_on() const noexcept;
  bool wait_for_hellos();
  bool wait_for_room(std::size_t size);
  bool is_received_at_once(std::size_t more) const noexcept;
  bool fill();
  bool is_usable();
  bool send_piece(std::span<const std::byte> bytes, std::size_t from);
  std::size_t send_pieces(std::span<const std::byte> bytes);
  std::size_t piece() const noexcept { return slots_.piece(); }
  std::size_t longest_fetched() const;
  std::span<const std::byte> next_of(std::span<const std::byte> bytes) const;
  bool goes_from_callers() const noexcept;
  bool send_copy(std::span<const std::byte> bytes);
  bool wait_for_callers_memory();
  std::size_t most_borrowed() const noexcept;
  void abandon() noexcept;
  bool say_end();
  void end() noexcept;
  bool wait(std::span<pipe_request* const> wanted);
  template <class Condition>
  bool wait_until(Condition condition);
  void begin_part() noexcept;
  template <class Condition, class Holds>
  bool wait_for_readers(Condition condition, Holds holds_up);

  pipe_path& path_;
  const pipe_options options_;
  std::vector<pipe_reader> readers_;
  pipe_slots slots_;
  std::uint64_t window_ = 0;
  std::size_t fetched_ = 0;  // bytes of a message that readers' hardware fetches; 0: none
  std::uint64_t sent_ = 0;
  std::uint16_t number_ = 0;  // of the next message of data
  stage stage_ = stage::open;
  bool greets_ = false;
  bool is_patient_ = false;  // with slow readers, since some time
  int parts_left_ = 0;       // of that time
  pipe_failure failure_;
  std::error_code passing_;
  std::vector<pipe_request*> wanted_;
  pipe_waiter waiter_;
};

}  // namespace ucx::detail
