// The reading end of a pipe: messages of one writer, or of several in turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "pipes/pipe_end.hpp"
#include "pipes/pipe_frame.hpp"
#include "pipes/pipe_path.hpp"
#include "pipes/pipe_places.hpp"
#include "ucx/pipe_stream.hpp"

namespace ucx::detail {

/// Receives are posted for each writer, so that its messages land where they are read. A writer of
/// the same host is offered memory that it may put its bytes into instead. The writer is told what
/// the program has taken when that is a quarter of the window, or two messages of full length. It
/// is also told when it could not send such a message otherwise, and before this side waits.
///
/// The stage of a writer:
///
///     from | to    | when
///     open | ended | all that it says it has sent is here
///     open | lost  | its connection ended before, it gave up, or it broke the rules
///     any  | lost  | bytes that had come got lost in this process
class pipe_input {
 public:
  enum class outcome { done, end_of_data, failed };

  /// Bytes of one message of data at most: as long as goes whole (docs/reference/messages.md).
  static constexpr std::size_t piece = (std::size_t{256} << 10U) - 512;
  /// Likewise, where RMA hardware reads it from the writer's memory: as short as that is done.
  static constexpr std::size_t fetched_piece = std::size_t{1} << 20U;

  /// Says hello to every writer.
  pipe_input(pipe_path& path, const pipe_options& options);
  ~pipe_input();
  pipe_input(const pipe_input&) = delete;
  pipe_input& operator=(const pipe_input&) = delete;

  /// Returns the bytes that may be read now: of one message.
  std::span<std::byte> area() const noexcept { return area_; }
  /// Gives `area()` back, and waits for the next one, which is not empty. Where no call waits it
  /// may fail with `would_block`, and is to be asked again when the end is woken.
  outcome refill();
  /// Gives `area()` back, and returns whether `refill` would not wait. Makes no progress.
  bool is_ready();
  /// Every later `refill` fails so: bytes that it gave got lost in this process.
  void give_up(std::error_code why) noexcept;
  /// Stops reading, with so many bytes of the area not taken: tells the writers so, unless they are
  /// done.
  void close(std::size_t unread = 0) noexcept;

  /// Returns how many bytes were given back.
  std::uint64_t taken() const noexcept { return taken_; }
  /// Returns whether anything came in places.
  bool was_in_place() const noexcept { return was_in_place_; }
  /// Why `refill` failed.
  std::error_code error() const noexcept { return failure_ ? failure_.code() : passing_; }
  std::string error_text() const;

 private:
  enum class stage { open, ended, lost };
  struct slot {
    std::span<std::byte> bytes;
    pipe_request receive;
  };
  struct link {
    endpoint* peer = nullptr;
    std::shared_ptr<std::byte[]> memory;  // of the slots, and of the end
    std::vector<slot> slots;              // posted in their order, from `head` on
    std::size_t head = 0;
    std::uint64_t received = 0;
    std::uint16_t number = 0;  // of the next message
    std::uint64_t taken = 0;
    std::uint64_t reported = 0;
    std::uint64_t untold = 0;  // messages that were taken since
    std::optional<offered_places> places;
    std::uint64_t untold_places = 0;
    pipe_request report;  // the last one that is not waited for
    std::span<std::byte> end_memory;
    pipe_request end_receive;
    std::optional<pipe_end> end;
    stage is = stage::open;
  };

  void open(link& made);
  std::size_t longest_of(const endpoint& writer) const;
  void post(link& of, slot& next);
  void count_taken() noexcept;
  void give_back();
  bool advance();
  bool look(link& at);
  void look_for_end(link& at);
  void accept(link& at, slot& filled);
  void offer_places(link& to);
  void lose(link& at, std::error_code why);
  void break_protocol(link& at, const char* what);
  bool is_due(const link& of) const noexcept;
  template <class Send>
  static void tell(link& to, Send send);
  void report(link& to, pipe_said what);
  void report_when_idle(link& to);
  std::error_code wait();

  pipe_path& path_;
  const pipe_options options_;
  std::vector<link> links_;
  std::size_t current_ = 0;  // whose the area is, and who was read last
  std::span<std::byte> area_;
  bool is_in_place_ = false;   // the area, and no message's own
  bool was_in_place_ = false;  // any area so far
  std::uint64_t taken_ = 0;
  bool closed_ = false;
  pipe_failure failure_;
  std::error_code passing_;
  std::vector<pipe_request*> wanted_;
  pipe_waiter waiter_;
};

}  // namespace ucx::detail
