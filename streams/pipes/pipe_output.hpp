// The writing end of a pipe: to one reader, or the same bytes to several.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "pipes/pipe_end.hpp"
#include "pipes/pipe_frame.hpp"
#include "pipes/pipe_path.hpp"
#include "pipes/pipe_places.hpp"
#include "ucx/pipe_options.hpp"

namespace ucx::detail {

/// Bytes gather in a slot, which goes as one message when it is full, or flushed; meanwhile another
/// slot is filled. What is as long as a slot goes from the caller's memory, unless it would wait
/// there until a reader reads. Slots of a reader's own memory, where it offers some, are said to be
/// filled instead, and are free again when it has taken what was there. No reader is sent more than
/// its window without having taken it.
class pipe_output {
 public:
  /// Waits until every reader has said hello, `options.meeting` at most.
  pipe_output(pipe_path& path, const pipe_options& options);
  ~pipe_output();
  pipe_output(const pipe_output&) = delete;
  pipe_output& operator=(const pipe_output&) = delete;

  /// An operation of the program begins: all that waits in it has `options.timeout` together.
  void begin() noexcept { waiter_.begin(options_.timeout); }

  /// Returns where bytes may be put: nowhere before `ensure_area`.
  std::span<std::byte> area() const noexcept { return area_; }
  /// Waits for a place; returns whether there is one.
  bool ensure_area();
  /// Sends the first `used` bytes of `area()`, and makes room for more. Returns whether it could.
  bool flush(std::size_t used);
  /// Sends `bytes`, and returns how many of them were sent, when their memory can be used again.
  std::size_t send(std::span<const std::byte> bytes);
  /// Returns how long a message may be.
  std::size_t piece() const noexcept { return piece_; }

  /// Says that this was all, and returns when every reader's process has everything; or gives up.
  /// REQUIRES: what was put is flushed.    Errors: broken_pipe, those of `flush`.
  std::error_code close();
  void abort(std::error_code why) noexcept;

  bool is_closed() const noexcept { return closed_; }
  /// Returns whether it can not go on.
  bool is_broken() const noexcept { return closed_ || failure_; }
  std::uint64_t sent() const noexcept { return sent_; }
  /// Returns how many bytes every reader's program has taken, as far as it has told. Drives
  /// nothing.
  std::uint64_t taken();
  /// Returns how many readers are there; after a close that went well how many have had everything.
  std::size_t readers() const noexcept;
  /// Returns whether long messages go into memory of the reader's.
  bool uses_places() const noexcept { return first_place_ != ~std::size_t{0}; }
  std::error_code error() const noexcept { return failure_ ? failure_.code() : passing_; }
  std::string error_text() const;

 private:
  // What a send reads that is of no slot.
  static constexpr std::size_t callers = ~std::size_t{0};
  static constexpr std::size_t copied_slot = callers - 1;
  struct slot {
    std::unique_ptr<std::byte[]> memory;
    std::size_t in_flight = 0;  // sends that read it, or 1: the reader reads it
  };
  struct sending {
    request send;
    std::size_t from = copied_slot;  // the slot
  };
  struct hearing {
    std::array<std::byte, longest_of_reader> memory{};
    request receive;
  };
  struct link {
    endpoint* peer = nullptr;
    std::array<hearing, 2> said{};
    std::size_t next_said = 0;
    std::optional<pipe_hello> hello;
    bool offered = false;  // places
    std::uint64_t taken = 0;
    std::deque<std::uint64_t> waiting;  // where messages end that were sent and not taken
    std::size_t sends_before = 0;       // when somebody began to wait for it
    bool over = false;                  // nothing more is sent to it
    bool left = false;                  // it said so
    bool told_end = false;
    std::deque<sending> sends;
    std::deque<std::pair<std::uint64_t, std::size_t>> placed;  // where they end, and their slots
    request end;
    bool is_ending = false;
  };

  std::size_t present() const noexcept;
  void listen(link& to, hearing& next);
  void look();
  void look(link& at);
  void hear_all(link& at);
  void let_go(std::size_t from) noexcept;
  void hear(link& at, std::uint64_t tag, std::span<const std::byte> said);
  void greet(link& at, std::span<const std::byte> said);
  void count(link& at, std::span<const std::byte> said, bool leaves);
  void use_places(link& at, std::span<const std::byte> said);
  void add_places();
  void miss(const link& gone);
  void lose(link& at, std::error_code why);
  bool goes_on() const noexcept;
  void drop(link& at, std::error_code why) noexcept;
  bool wait_for_hellos();
  bool has_room(const link& at, std::size_t size) const noexcept;
  bool wait_for_room(std::size_t size);
  bool is_received_at_once(std::size_t more) const noexcept;
  std::size_t free_slot() const noexcept;
  bool fill();
  bool is_usable();
  bool send_piece(std::span<const std::byte> bytes, std::size_t from);
  std::size_t send_pieces(std::span<const std::byte> bytes);
  void start(link& to, std::span<const std::byte> bytes, std::size_t from);
  void start_place(link& to, std::size_t size, std::size_t from);
  bool is_place(std::size_t index) const noexcept;
  void leave_places() noexcept;
  std::span<std::byte> memory_of(std::size_t index) const noexcept;
  bool goes_from_callers() const noexcept;
  bool send_copy(std::span<const std::byte> bytes);
  void move_on() noexcept;
  bool wait_for_callers_memory();
  std::size_t most_borrowed() const noexcept;
  void abandon() noexcept;
  bool say_end();
  bool wait(std::span<request* const> wanted);
  template <class Condition>
  bool wait_until(Condition condition);
  template <class Condition, class Holds>
  bool wait_for_readers(Condition condition, Holds holds_up);

  pipe_path& path_;
  const pipe_options options_;
  std::vector<link> links_;
  std::size_t piece_ = 0;
  std::uint64_t window_ = 0;
  std::optional<mapped_places> places_;
  std::size_t first_place_ = ~std::size_t{0};  // from this slot on they are places
  std::vector<slot> slots_;
  std::size_t filling_ = 0;
  std::size_t borrowed_ = 0;  // sends that read the caller's memory
  std::span<std::byte> area_;
  std::uint64_t sent_ = 0;
  std::uint16_t number_ = 0;  // of the next message of data
  bool ending_ = false;
  bool closed_ = false;
  pipe_failure failure_;
  std::error_code passing_;
  std::vector<request*> wanted_;
  pipe_waiter waiter_;
};

}  // namespace ucx::detail
