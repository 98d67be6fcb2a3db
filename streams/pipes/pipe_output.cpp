#include "pipes/pipe_output.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "pipes/pipe_frame.hpp"
#include "pipes/pipe_input.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::detail {
namespace {

using namespace std::chrono_literals;

/// Bytes as short as this are copied, so that their slot can be filled on.
constexpr std::size_t worth_a_copy = std::size_t{16} << 10U;

/// There are slots for a window of messages of this length: what is shorter goes whole, and leaves
/// its slot at once.
constexpr std::size_t usual_length = std::size_t{64} << 10U;

/// So many timers, one after the other, measure how long a slow reader is waited for. While this
/// process does not run, one of them ends: the reader has the time of the others.
constexpr int parts_of_patience = 4;

}  // namespace

pipe_output::pipe_output(pipe_path& path, const pipe_options& options)
    : path_(path),
      options_(options),
      readers_(path.peers.size()),
      // Bytes for several readers have to be copied for each of them anyway.
      slots_(path.peers.size() == 1 && options.context.share_memory),
      waiter_(path, options.stop, 3 * path.peers.size()) {
  wanted_.reserve(3 * readers_.size());
  for (std::size_t i = 0; i < readers_.size(); ++i) readers_[i].open(path.peers[i], slots_);
}

bool pipe_output::open() {
  passing_.clear();
  if (!wait_for_hellos()) return false;
  // A reader may grant more than this process has memory for.
  window_ = std::max(options_.window, pipe_options().window);
  std::uint64_t least = window_;
  std::uint64_t piece = pipe_input::piece;
  for (const pipe_reader& each : readers_) {
    if (!each.hello()) continue;  // lost, and not missed
    least = std::min(least, each.hello()->window);
    piece = std::min(piece, each.hello()->piece);
  }
  slots_.open(static_cast<std::size_t>(least / usual_length) + 2, static_cast<std::size_t>(piece));
  fetched_ = longest_fetched();
  begin();
  return fill();
}

/// Returns how long messages are that the hardware of every reader fetches; 0 where not every one
/// does.
std::size_t pipe_output::longest_fetched() const {
  for (std::size_t i = 0; i < readers_.size(); ++i) {
    const auto& hello = readers_[i].hello();
    if (!hello) continue;
    const bool fetches = hello->piece >= pipe_input::fetched_piece &&
                         path_.peers[i].report().long_messages == transfer_method::rma;
    if (!fetches) return 0;
  }
  return window_ >= pipe_input::fetched_piece ? pipe_input::fetched_piece : 0;
}

pipe_output::~pipe_output() {
  if (!is_closed()) abort(errc::canceled);
  if (!path_.woken) return;
  for (pipe_reader& each : readers_) each.leave_words();
}

bool pipe_output::wait_for_hellos() {
  if (!std::exchange(greets_, true)) waiter_.begin(options_.connect_timeout);
  for (pipe_reader& each : readers_) {
    look(each);
    while (!failure_ && !each.is_over() && !each.hello()) {
      wanted_.clear();
      each.add_awaited(wanted_);
      if (!wait(wanted_)) {
        if (passing_ == errc::timed_out) {
          failure_.set(passing_, path_.name + ": the other side did not begin to read in time");
        }
        return false;
      }
      look(each);
    }
  }
  return !failure_;
}

void pipe_output::look() {
  for (pipe_reader& each : readers_) look(each);
}

void pipe_output::look(pipe_reader& at) {
  if (!at.look(sent_)) return;
  try {
    note_end(at);
  } catch (...) {  // without memory for the words, and it is not told again
    failure_.set(make_error_code(errc::connection_reset), {});
    throw;
  }
}

/// A reader is over, which the others may make up for.
void pipe_output::note_end(const pipe_reader& gone) {
  if (gone.where() == pipe_reader::stage::left) {
    // One that has had everything so far is missed only if more comes.
    if (gone.taken() != sent_) miss(gone);
    return;
  }
  if (gone.where() == pipe_reader::stage::dropped) {  // for its version: nothing else is heard
    return failure_.set(gone.why_over(), path_.name + ": the reader speaks version " +
                                             std::to_string(gone.hello()->version) +
                                             " of pipes, and this side " +
                                             std::to_string(pipe_version));
  }
  // A reader that has everything may leave before this side has looked.
  if (stage_ != stage::open && gone.has_end()) return;
  if (goes_on()) return;
  const std::string taken =
      ", having taken " + std::to_string(gone.taken()) + " of " + pipe_bytes_text(sent_);
  if (gone.why_over() == errc::protocol_error) {
    return failure_.set(gone.why_over(), path_.name + ": the reader broke the rules" + taken);
  }
  failure_.set(make_error_code(errc::connection_reset),
               path_.name + ": the reader was lost (" + gone.why_over().message() + ")" + taken);
}

void pipe_output::miss(const pipe_reader& gone) {
  if (goes_on()) return;
  failure_.set(make_error_code(errc::broken_pipe), path_.name + ": the reader left, having taken " +
                                                       std::to_string(gone.taken()) + " of " +
                                                       pipe_bytes_text(sent_));
}

/// Returns whether a reader that is over is not missed, because there are others.
bool pipe_output::goes_on() const noexcept {
  return options_.slow_reader == slow_reader_policy::drop && present() > 0;
}

std::size_t pipe_output::present() const noexcept {
  return static_cast<std::size_t>(std::count_if(
      readers_.begin(), readers_.end(), [](const pipe_reader& each) { return !each.is_over(); }));
}

std::size_t pipe_output::readers() const noexcept {
  if (!is_closed()) return present();
  return static_cast<std::size_t>(
      std::count_if(readers_.begin(), readers_.end(),
                    [this](const pipe_reader& each) { return each.has_everything(sent_); }));
}

bool pipe_output::wait(std::span<pipe_request* const> wanted) {
  passing_ = waiter_.wait(wanted);
  return !passing_;
}

/// Waits until `condition` holds, which only what readers say and ends of sends bring about.
template <class Condition>
bool pipe_output::wait_until(Condition condition) {
  for (;;) {
    look();
    if (failure_) return false;
    // As it was before the condition was looked at: what ends behind that ends the wait.
    for (pipe_reader& each : readers_) each.mark_end();
    if (condition()) return true;
    wanted_.clear();
    for (pipe_reader& each : readers_) each.add_awaited(wanted_);
    if (!wait(wanted_)) return false;
  }
}

void pipe_output::begin_part() noexcept {
  const std::chrono::nanoseconds whole = options_.slow_reader_timeout;
  waiter_.begin(std::max<std::chrono::nanoseconds>(whole / parts_of_patience, 1ns));
}

/// As `wait_until`; where slow readers may be dropped, drops those that `holds_up` after
/// `options.slow_reader_timeout`, until the others can go on.
template <class Condition, class Holds>
bool pipe_output::wait_for_readers(Condition condition, Holds holds_up) {
  if (options_.slow_reader == slow_reader_policy::wait || readers_.size() == 1)
    return wait_until(condition);
  for (;;) {
    if (!std::exchange(is_patient_, true)) {
      for (pipe_reader& each : readers_) each.begin_patience();
      // Where no call waits, the first timer may have begun before (`pipe_waiter::begin`).
      parts_left_ = parts_of_patience + (path_.woken ? 1 : 0);
      begin_part();
    }
    const bool holds = wait_until(condition);
    is_patient_ = !holds && would_wait();
    if (holds) return true;
    if (failure_ || passing_ != errc::timed_out) return false;
    if (--parts_left_ > 0) {
      is_patient_ = true;
      begin_part();
      passing_.clear();
      continue;
    }
    bool changed = false;
    for (pipe_reader& each : readers_) {
      changed = changed || each.has_moved();
      if (each.is_over()) {
        // UCX may hold on to what was cancelled, until the connection counts as lost.
        if (each.cancel_sends()) changed = true;
      } else if (holds_up(each)) {
        each.drop(sent_, errc::timed_out);
        changed = true;
      }
    }
    if (!changed) return false;
    passing_.clear();
    if (present() > 0) continue;
    failure_.set(make_error_code(errc::broken_pipe),
                 path_.name + ": every reader was too slow, and was dropped");
    return false;
  }
}

/// Returns whether every reader has a receive for so many messages more, whether or not its program
/// reads.
bool pipe_output::is_received_at_once(std::size_t more) const noexcept {
  return std::all_of(readers_.begin(), readers_.end(),
                     [&](const pipe_reader& each) { return each.receives(more); });
}

bool pipe_output::wait_for_room(std::size_t size) {
  const auto has_room = [&](const pipe_reader& each) {
    return each.has_room(size, sent_, window_);
  };
  return wait_for_readers([&] { return std::all_of(readers_.begin(), readers_.end(), has_room); },
                          [&](const pipe_reader& each) { return !has_room(each); });
}

/// Makes the area the whole of a slot from which nothing is on its way.
bool pipe_output::fill() {
  slots_.drop_area();
  std::size_t found = pipe_slots::none;
  const auto is_found = [&] {
    found = slots_.find_free(is_received_at_once(0));
    return found != pipe_slots::none;
  };
  if (!wait_for_readers(is_found, [](const pipe_reader& each) { return each.has_sends(); })) {
    return false;
  }
  if (slots_.fill(found)) return true;
  passing_ = errc::no_memory;
  return false;
}

bool pipe_output::ensure_area() {
  if (!is_usable()) return false;
  return !area().empty() || fill();
}

bool pipe_output::is_usable() {
  passing_.clear();
  if (failure_) return false;
  if (is_closed()) passing_ = errc::closed;
  return !is_closed();
}

/// To every reader, or to none.
bool pipe_output::send_piece(std::span<const std::byte> bytes, std::size_t from) {
  if (!wait_for_room(bytes.size())) return false;
  const bool goes_without_some = goes_on();
  for (const pipe_reader& each : readers_) {
    if (each.is_over() && !goes_without_some) {
      miss(each);
      return false;
    }
  }
  const std::uint64_t end = sent_ + bytes.size();
  try {
    for (pipe_reader& each : readers_) {
      if (each.is_over()) continue;
      if (slots_.is_place(from)) {
        each.send_place(bytes.size(), number_, from, end);
      } else {
        each.send(bytes, number_, from, end);
      }
    }
  } catch (...) {  // some readers may have it, and none is to have it twice
    failure_.set(make_error_code(errc::no_memory), {});
    throw;
  }
  sent_ = end;
  ++number_;
  return true;
}

bool pipe_output::flush(std::size_t used) {
  if (!is_usable()) return false;
  if (used == 0) return true;
  // Behind one that waits for a receive a send of a slot is not noticed to have gone.
  const bool waits = !slots_.is_place(slots_.filling()) && !is_received_at_once(1);
  const bool brief = used <= worth_a_copy || (used <= usual_length && waits);
  const std::size_t from = brief ? pipe_slots::copied : slots_.filling();
  if (!send_piece(area().first(used), from)) return false;
  try {
    look();
  } catch (...) {
    slots_.move_on();  // it was sent
    throw;
  }
  if (failure_) return false;
  slots_.move_on();
  return true;
}

bool pipe_output::send_copy(std::span<const std::byte> bytes) {
  if (!ensure_area()) return false;
  copy_memory(area().data(), bytes.data(), bytes.size(), {.timeout = options_.timeout}, passing_);
  if (passing_) return false;
  if (!send_piece(area().first(bytes.size()), slots_.filling())) return false;
  look();
  slots_.move_on();
  return true;
}

std::size_t pipe_output::send(std::span<const std::byte> bytes) {
  if (!is_usable()) return 0;
  try {
    return send_pieces(bytes);
  } catch (...) {  // the memory is the caller's again
    failure_.set(make_error_code(errc::no_memory), {});
    abandon();
    throw;
  }
}

std::size_t pipe_output::sent_of(std::size_t count) const noexcept {
  const std::size_t behind = fetched_ == 0 ? count : count % fetched_;
  return count - behind % piece();
}

/// Returns what goes next: as much as hardware fetches, or as fits a slot.
std::span<const std::byte> pipe_output::next_of(std::span<const std::byte> bytes) const {
  const bool is_fetched = fetched_ != 0 && bytes.size() >= fetched_ && goes_from_callers();
  return bytes.first(std::min(is_fetched ? fetched_ : piece(), bytes.size()));
}

std::size_t pipe_output::send_pieces(std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    std::span<const std::byte> next = next_of(bytes.subspan(done));
    if (!wait_for_room(next.size())) break;
    if (!area().empty()) slots_.move_on();
    const bool as_it_lies =
        goes_from_callers() && !ucx::is_copied_by_driver(next.data(), next.size());
    if (!as_it_lies) next = next.first(std::min(piece(), next.size()));
    if (!(as_it_lies ? send_piece(next, pipe_slots::callers) : send_copy(next))) break;
    done += next.size();
  }
  const std::error_code before = passing_;
  if (!wait_for_callers_memory()) {
    failure_.set(passing_, path_.name + ": the memory was taken back before it was sent: " +
                               passing_.message());
    done -= std::min(done, std::max(piece(), fetched_) * most_borrowed());
    abandon();
  }
  if (!passing_) passing_ = before;
  return done;
}

/// Returns whether the next long message is best sent from the caller's memory: readers receive it
/// at once, and have no place for it.
bool pipe_output::goes_from_callers() const noexcept {
  const std::size_t next =
      area().empty() ? slots_.find_free(is_received_at_once(0)) : slots_.filling();
  return !slots_.is_place(next) && is_received_at_once(1);
}

/// Short: readers have a receive for each message that reads it. The time of the operation may have
/// passed before, and a readers' process that does not go on is given as much again.
bool pipe_output::wait_for_callers_memory() {
  if (slots_.borrowed() == 0) return true;
  begin();
  return wait_for_readers([&] { return slots_.borrowed() == 0; },
                          [](const pipe_reader& each) { return each.borrowed() > 0; });
}

/// Returns how many messages in the caller's memory some reader does not have yet.
std::size_t pipe_output::most_borrowed() const noexcept {
  std::size_t most = 0;
  for (const pipe_reader& each : readers_) most = std::max(most, each.borrowed());
  return most;
}

/// Gives up what is on its way: nothing reads the slots, or the caller's memory, any more.
void pipe_output::abandon() noexcept {
  for (pipe_reader& each : readers_) {
    if (path_.woken) {
      each.leave_sends();
    } else {
      each.forget_sends();
    }
  }
  slots_.forget();
}

std::error_code pipe_output::close() {
  if (is_closed()) return {};
  passing_.clear();
  const auto all_gone = [&] {
    return std::all_of(readers_.begin(), readers_.end(),
                       [](const pipe_reader& each) { return !each.has_sends(); });
  };
  const bool ended = !failure_ && wait_for_readers(all_gone, [](const pipe_reader& each) {
    return each.has_sends() && !each.has_moved();
  }) && say_end();
  if (!ended && would_wait()) return errc::would_block;
  std::error_code ec = error();
  if (!ec && !ended) ec = errc::canceled;
  if (ec) {
    abort(ec);
  } else {
    end();
  }
  return ec;
}

bool pipe_output::say_end() {
  stage_ = stage::ending;
  for (pipe_reader& each : readers_) {
    if (!each.is_over()) each.say_end(sent_);
  }
  const auto ended = [](const pipe_reader& each) { return each.is_over() || each.is_end_over(); };
  if (!wait_for_readers([&] { return std::all_of(readers_.begin(), readers_.end(), ended); },
                        [](const pipe_reader& each) { return !each.is_end_over(); })) {
    return false;
  }
  look();
  for (pipe_reader& each : readers_) {
    if (each.look_at_end()) note_end(each);
  }
  return !failure_;
}

void pipe_output::abort(std::error_code why) noexcept {
  if (is_closed()) return;
  for (pipe_reader& each : readers_) {
    if (!each.is_over()) each.drop(sent_, why);
  }
  end();
}

/// Nothing is on its way any more, or matters. A reader that takes what is there frees no slot.
void pipe_output::end() noexcept {
  stage_ = stage::closed;
  abandon();
  slots_.leave_places();
  waiter_.end();
}

std::uint64_t pipe_output::taken() {
  look();
  std::uint64_t least = sent_;
  for (const pipe_reader& each : readers_) {
    if (!each.is_over() || present() == 0) least = std::min(least, each.taken());
  }
  return least;
}

std::string pipe_output::error_text() const {
  if (failure_ && !failure_.text().empty()) return failure_.text();
  if (!error()) return {};
  return path_.name + ": writing behind " + pipe_bytes_text(sent_) + ": " + error().message();
}

}  // namespace ucx::detail
