// One reader of a pipe, as its writer knows it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "pipes/pipe_frame.hpp"
#include "pipes/pipe_path.hpp"
#include "pipes/pipe_queue.hpp"
#include "pipes/pipe_slots.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

/// The state of a reader, and what is on its way to it. The writer decides what a reader's end
/// means for the pipe: `look()` tells once that the reader is over.
///
///     from    | to      | when
///     present | left    | it said so
///     present | lost    | its connection ended, or it broke the rules
///     present | dropped | the writer gave it up: too slow, of another version, or nothing follows
///
/// States of the end that is said to it:
///
///     from   | to   | when
///     unsaid | said | `say_end()`
///     said   | over | its process has it, or it could not be sent
class pipe_reader {
 public:
  enum class stage { present, left, lost, dropped };

  pipe_reader() = default;
  pipe_reader(const pipe_reader&) = delete;
  pipe_reader& operator=(const pipe_reader&) = delete;

  /// Listens.    Lifetime: `peer` and `slots`, until this is gone.
  void open(endpoint& peer, pipe_slots& slots);

  stage where() const noexcept { return stage_; }
  /// Returns whether nothing more is sent to it.
  bool is_over() const noexcept { return stage_ != stage::present; }
  /// Returns why it is, unless it left.
  std::error_code why_over() const noexcept { return why_over_; }
  const std::optional<pipe_hello>& hello() const noexcept { return hello_; }
  /// Returns how many bytes its program has taken, as far as it has told.
  std::uint64_t taken() const noexcept { return taken_; }
  /// Returns whether it has had all of `sent`, as far as it is known.
  bool has_everything(std::uint64_t sent) const noexcept;

  /// Hears what it said, and notices which sends have ended. Returns whether that was its end.
  bool look(std::uint64_t sent);

  /// Returns whether it has room for a message of `size` bytes behind `sent`.
  bool has_room(std::size_t size, std::uint64_t sent, std::uint64_t window) const noexcept;
  /// Returns whether it has a receive for so many messages more, whether or not its program reads.
  bool receives(std::size_t more) const noexcept {
    return is_over() || waiting_.size() + more <= hello_->receives;
  }
  /// Sends a message that ends at byte `end` of the pipe; or says which place has it.
  void send(std::span<const std::byte> bytes, std::uint16_t number, std::size_t from,
            std::uint64_t end);
  void send_place(std::size_t size, std::uint16_t number, std::size_t from, std::uint64_t end);
  bool has_sends() const noexcept { return !sends_.empty(); }
  /// Returns how many sends read the caller's memory.
  std::size_t borrowed() const noexcept;

  void say_end(std::uint64_t total);
  /// Returns whether its process has the end; or will not have it.
  bool has_end() const noexcept {
    return ending_ != ending::unsaid && end_.done() && !end_.error();
  }
  bool is_end_over() const noexcept { return end_.done(); }
  /// Returns whether it could not be told of the end, and is over by that.
  bool look_at_end();
  /// Tells it that nothing more will come, and why.
  void drop(std::uint64_t sent, std::error_code why) noexcept;

  /// Somebody begins to wait for it, patiently.
  void begin_patience() noexcept { sends_before_ = sends_.size(); }
  /// Returns whether fewer, or more, sends are on their way since.
  bool has_moved() const noexcept { return sends_.size() != sends_before_; }
  /// Marks what has to be waited for, before it is looked whether that is necessary.
  void mark_end() noexcept {
    if (ending_ == ending::said && end_.done()) ending_ = ending::over;
  }
  /// Adds what it does next: what ended since `mark_end()` is there, too.
  void add_awaited(std::vector<pipe_request*>& to);

  /// Gives up what is on its way; returns whether there was something. UCX may hold on to it.
  bool cancel_sends() noexcept;
  /// Gives it all up, and what it has not taken of places: nothing reads this side's memory, or the
  /// caller's, any more.
  void forget_sends() noexcept {
    sends_.clear();
    placed_.clear();
  }
  /// As `forget_sends()`, and never waits: what is under way owns its memory from here on.
  /// REQUIRES: none of it is the caller's.
  void leave_sends() noexcept;
  /// Does not listen any more, and does not wait for the end of that. The last thing done here.
  void leave_words() noexcept;

 private:
  enum class ending { unsaid, said, over };
  struct hearing {
    std::shared_ptr<std::array<std::byte, longest_of_reader>> memory;
    pipe_request receive;
  };
  struct sending {
    pipe_request send;
    std::size_t from = pipe_slots::copied;
  };

  void listen(hearing& next);
  pipe_request& next_word() noexcept { return said_[next_said_].receive; }
  void hear_all(std::uint64_t sent);
  void hear(std::uint64_t tag, std::span<const std::byte> said, std::uint64_t sent);
  void greet(std::span<const std::byte> said, std::uint64_t sent);
  void count(std::span<const std::byte> said, std::uint64_t sent, bool leaves);
  void use_places(std::span<const std::byte> said);
  void lose(std::error_code why) noexcept;

  endpoint* peer_ = nullptr;
  pipe_slots* slots_ = nullptr;
  std::array<hearing, 2> said_{};
  std::size_t next_said_ = 0;
  std::optional<pipe_hello> hello_;
  bool has_offered_ = false;  // places
  std::uint64_t taken_ = 0;
  pipe_queue<std::uint64_t> waiting_;  // where messages end that were sent and not taken
  pipe_queue<sending> sends_;
  std::size_t sends_before_ = 0;
  pipe_queue<std::pair<std::uint64_t, std::size_t>> placed_;  // where they end, and their slots
  pipe_request end_;
  ending ending_ = ending::unsaid;
  stage stage_ = stage::present;
  std::error_code why_over_;
};

}  // namespace ucx::detail
