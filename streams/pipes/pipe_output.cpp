#include "pipes/pipe_output.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <new>
#include <utility>

#include "pipes/pipe_input.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_copy.hpp"

namespace ucx::detail {
namespace {

/// What is as short as this is copied, so that its slot can be filled on.
constexpr std::size_t worth_a_copy = std::size_t{16} << 10U;

/// So many are used while readers receive at once, so that a writer finds them in its cache.
constexpr std::size_t few_slots = 8;

/// There are slots for a window of messages of this length: what is shorter goes whole, and leaves
/// its slot at once.
constexpr std::size_t usual_length = std::size_t{64} << 10U;
constexpr std::size_t no_slot = ~std::size_t{0};

}  // namespace

pipe_output::pipe_output(pipe_path& path, const pipe_options& options)
    : path_(path),
      options_(options),
      links_(path.peers.size()),
      waiter_(*path.driven, options.stop, 3 * path.peers.size()) {
  wanted_.reserve(3 * links_.size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    links_[i].peer = &path.peers[i];
    for (hearing& each : links_[i].said) listen(links_[i], each);
  }
  if (!wait_for_hellos()) return;
  // What a reader grants is not what this process has memory for.
  window_ = std::max(options_.window, pipe_options().window);
  std::uint64_t least = window_;
  std::uint64_t piece = pipe_input::piece;
  for (const link& each : links_) {
    if (!each.hello) continue;  // lost, and not missed
    least = std::min(least, each.hello->window);
    piece = std::min(piece, each.hello->piece);
  }
  piece_ = static_cast<std::size_t>(piece);
  slots_.resize(static_cast<std::size_t>(least / usual_length) + 2);
  add_places();
  begin();
  fill();
}

pipe_output::~pipe_output() {
  if (!closed_) abort(errc::canceled);
}

bool pipe_output::wait_for_hellos() {
  waiter_.begin(options_.meeting);
  for (link& each : links_) {
    look(each);
    while (!failure_ && !each.over && !each.hello) {
      wanted_.assign(1, &each.said[each.next_said].receive);
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

bool pipe_output::wait(std::span<request* const> wanted) {
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
    for (link& each : links_) each.is_ending = !each.over && !each.end.done();
    if (condition()) return true;
    wanted_.clear();
    for (link& each : links_) {
      if (!each.over) wanted_.push_back(&each.said[each.next_said].receive);
      if (!each.sends.empty()) wanted_.push_back(&each.sends.front().send);
      if (each.is_ending) wanted_.push_back(&each.end);
    }
    if (!wait(wanted_)) return false;
  }
}

/// As `wait_until`; where slow readers may be dropped, drops those that `holds_up` after
/// `options.patience`, until the others can go on.
template <class Condition, class Holds>
bool pipe_output::wait_for_readers(Condition condition, Holds holds_up) {
  if (options_.slow == slow_reader::wait || links_.size() == 1) return wait_until(condition);
  for (;;) {
    for (link& each : links_) each.sends_before = each.sends.size();
    waiter_.begin(options_.patience);
    if (wait_until(condition)) return true;
    if (failure_ || passing_ != errc::timed_out) return false;
    bool changed = false;
    for (link& each : links_) {
      changed = changed || each.sends.size() != each.sends_before;
      if (each.over) {
        // UCX may hold on to what was cancelled, until the connection counts as lost.
        for (sending& left : each.sends) {
          left.send.cancel();
          changed = true;
        }
      } else if (holds_up(each)) {
        drop(each, errc::timed_out);
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

bool pipe_output::has_room(const link& at, std::size_t size) const noexcept {
  if (at.over || at.waiting.empty()) return true;
  // Its own window, by which it decides when to tell what it has taken.
  return sent_ + size - at.taken + pipe_message_cost * (at.waiting.size() + 1) <=
         std::min(window_, at.hello->window);
}

/// Returns whether every reader has a receive for so many messages more, whether or not its program
/// reads.
bool pipe_output::is_received_at_once(std::size_t more) const noexcept {
  return std::all_of(links_.begin(), links_.end(), [&](const link& each) {
    return each.over || each.waiting.size() + more <= each.hello->receives;
  });
}

bool pipe_output::wait_for_room(std::size_t size) {
  const auto all_have = [&] {
    return std::all_of(links_.begin(), links_.end(),
                       [&](const link& each) { return has_room(each, size); });
  };
  return wait_for_readers(all_have, [&](const link& each) { return !has_room(each, size); });
}

void pipe_output::add_places() {
  if (!places_) return;
  first_place_ = slots_.size();
  slots_.resize(first_place_ + places_->count());
}

bool pipe_output::is_place(std::size_t index) const noexcept {
  return index >= first_place_ && index < slots_.size();
}

std::span<std::byte> pipe_output::memory_of(std::size_t index) const noexcept {
  if (is_place(index)) return places_->place(index - first_place_).first(piece_);
  return {slots_[index].memory.get(), piece_};
}

/// Nothing is put there any more, and a reader that has gone need not keep its memory for us. What
/// a reader that goes on takes from there makes no slot free.
void pipe_output::leave_places() noexcept {
  area_ = {};
  for (link& each : links_) each.placed.clear();
  slots_.resize(std::min(slots_.size(), first_place_));
  places_.reset();
}

/// Returns the first slot from which nothing is on its way, of the reader's if there is one. Beyond
/// the first few of our own there is one only where those would have to wait for a program to read.
std::size_t pipe_output::free_slot() const noexcept {
  for (std::size_t i = first_place_; i < slots_.size(); ++i) {
    if (slots_[i].in_flight == 0) return i;
  }
  const std::size_t own = std::min(first_place_, slots_.size());
  const std::size_t most = is_received_at_once(0) ? few_slots : own;
  for (std::size_t i = 0; i < std::min(most, own); ++i) {
    if (slots_[i].in_flight == 0) return i;
  }
  return no_slot;
}

/// Makes `area_` the whole of a slot from which nothing is on its way.
bool pipe_output::fill() {
  area_ = {};
  std::size_t found = no_slot;
  const auto is_found = [&] {
    found = free_slot();
    return found != no_slot;
  };
  if (!wait_for_readers(is_found, [](const link& each) { return !each.sends.empty(); })) {
    return false;
  }
  slot& next = slots_[found];
  if (!is_place(found)) {
    if (!next.memory) next.memory.reset(new (std::nothrow) std::byte[piece_]);
    if (!next.memory) {
      passing_ = errc::no_memory;
      return false;
    }
  }
  filling_ = found;
  area_ = memory_of(found);
  return true;
}

bool pipe_output::ensure_area() {
  if (!is_usable()) return false;
  return !area_.empty() || fill();
}

bool pipe_output::is_usable() {
  passing_.clear();
  if (failure_) return false;
  if (closed_) passing_ = errc::closed;
  return !closed_;
}

/// To every reader, or to none.
bool pipe_output::send_piece(std::span<const std::byte> bytes, std::size_t from) {
  if (!wait_for_room(bytes.size())) return false;
  const bool goes_without_some = goes_on();
  for (const link& each : links_) {
    if (each.over && !goes_without_some) {
      miss(each);
      return false;
    }
  }
  try {
    for (link& each : links_) {
      if (each.over) continue;
      if (is_place(from)) {
        start_place(each, bytes.size(), from);
      } else {
        start(each, bytes, from);
      }
      each.waiting.push_back(sent_ + bytes.size());
    }
  } catch (...) {  // some may have it, and nobody is to have it twice
    failure_.set(make_error_code(errc::no_memory), {});
    throw;
  }
  sent_ += bytes.size();
  ++number_;
  return true;
}

void pipe_output::start(link& to, std::span<const std::byte> bytes, std::size_t from) {
  const bool copied = from == copied_slot;
  const auto memory = copied ? send_memory::copied : send_memory::borrowed;
  to.sends.push_back({to.peer->start_send(pipe_tag(pipe_said::data, number_), bytes,
                                          {.timeout = pipe_patience, .memory = memory}),
                      from});
  if (from == callers) {
    ++borrowed_;
  } else if (!copied) {
    ++slots_[from].in_flight;
  }
}

/// Says that a place has so many bytes.
void pipe_output::start_place(link& to, std::size_t size, std::size_t from) {
  const pipe_place_bytes said =
      encode(pipe_place{.place = static_cast<std::uint32_t>(from - first_place_),
                        .length = static_cast<std::uint32_t>(size)});
  // Taken before it is said: whatever fails then, nothing else is put there.
  to.placed.emplace_back(sent_ + size, from);
  slots_[from].in_flight = 1;
  std::atomic_thread_fence(std::memory_order_release);
  to.sends.push_back(
      {to.peer->start_send(pipe_tag(pipe_said::placed, number_), said, short_pipe_send),
       copied_slot});
}

bool pipe_output::flush(std::size_t used) {
  if (!is_usable()) return false;
  if (used == 0) return true;
  // Behind one that waits for a receive a send of a slot is not noticed to have gone.
  const bool waits = !is_place(filling_) && !is_received_at_once(1);
  const bool brief = used <= worth_a_copy || (used <= usual_length && waits);
  if (!send_piece(area_.first(used), brief ? copied_slot : filling_)) return false;
  try {
    look();
  } catch (...) {
    move_on();  // it was sent
    throw;
  }
  if (failure_) return false;
  move_on();
  return true;
}

/// Leaves the slot, unless what was sent from there has gone already: then it is in the processor's
/// cache. One of our own is left for a place.
void pipe_output::move_on() noexcept {
  if (slots_[filling_].in_flight > 0 || (places_ && !is_place(filling_))) area_ = {};
}

bool pipe_output::send_copy(std::span<const std::byte> bytes) {
  if (!ensure_area()) return false;
  copy_memory(area_.data(), bytes.data(), bytes.size(), passing_, {.timeout = options_.timeout});
  if (passing_) return false;
  if (!send_piece(area_.first(bytes.size()), filling_)) return false;
  look();
  move_on();
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

std::size_t pipe_output::send_pieces(std::span<const std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t size = std::min(piece_, bytes.size() - done);
    const std::span<const std::byte> next = bytes.subspan(done, size);
    if (!wait_for_room(size)) break;
    if (!area_.empty()) move_on();
    const bool as_it_lies =
        goes_from_callers() && !ucx::is_copied_by_driver(next.data(), next.size());
    if (!(as_it_lies ? send_piece(next, callers) : send_copy(next))) break;
    done += size;
  }
  const std::error_code before = passing_;
  if (!wait_for_callers_memory()) {
    failure_.set(passing_, path_.name + ": the memory was taken back before it was sent: " +
                               passing_.message());
    done -= std::min(done, piece_ * most_borrowed());
    abandon();
  }
  if (!passing_) passing_ = before;
  return done;
}

/// Returns whether the next long message is best sent from the caller's memory: readers receive it
/// at once, and have no place for it.
bool pipe_output::goes_from_callers() const noexcept {
  const std::size_t next = area_.empty() ? free_slot() : filling_;
  return !is_place(next) && is_received_at_once(1);
}

/// Short: readers have a receive for each message that reads it. The time of the operation may have
/// passed before, and a readers' process that does not go on is given as much again.
bool pipe_output::wait_for_callers_memory() {
  if (borrowed_ == 0) return true;
  begin();
  return wait_for_readers([&] { return borrowed_ == 0; },
                          [](const link& each) {
                            return std::any_of(
                                each.sends.begin(), each.sends.end(),
                                [](const sending& one) { return one.from == callers; });
                          });
}

/// Returns how many messages in the caller's memory some reader does not have yet.
std::size_t pipe_output::most_borrowed() const noexcept {
  std::size_t most = 0;
  for (const link& each : links_) {
    const auto count = std::count_if(each.sends.begin(), each.sends.end(),
                                     [](const sending& one) { return one.from == callers; });
    most = std::max(most, static_cast<std::size_t>(count));
  }
  return most;
}

/// Gives up what is on its way: then nobody reads our memory, or the caller's.
void pipe_output::abandon() noexcept {
  for (link& each : links_) each.sends.clear();
  for (slot& each : slots_) each.in_flight = 0;
  for (link& each : links_) each.placed.clear();
  borrowed_ = 0;
}

std::error_code pipe_output::close() {
  if (closed_) return {};
  passing_.clear();
  const auto all_gone = [&] {
    return std::all_of(links_.begin(), links_.end(),
                       [](const link& each) { return each.sends.empty(); });
  };
  const bool ended = !failure_ && wait_for_readers(all_gone, [](const link& each) {
    return !each.sends.empty() && each.sends.size() == each.sends_before;
  }) && say_end();
  std::error_code ec = error();
  if (!ec && !ended) ec = errc::canceled;
  if (ec) {
    abort(ec);
  } else {
    closed_ = true;
    leave_places();
    waiter_.end();
  }
  return ec;
}

bool pipe_output::say_end() {
  const pipe_end_bytes end = encode(pipe_end{sent_, 0});
  ending_ = true;
  for (link& each : links_) {
    if (each.over) continue;
    each.end = each.peer->start_send(
        pipe_tag(pipe_said::end), end,
        {.timeout = pipe_patience, .memory = send_memory::copied, .until = send_until::matched});
    each.told_end = true;
  }
  const auto ended = [](const link& each) { return each.over || each.end.done(); };
  if (!wait_for_readers([&] { return std::all_of(links_.begin(), links_.end(), ended); },
                        [](const link& each) { return !each.end.done(); })) {
    return false;
  }
  look();
  for (link& each : links_) {
    if (each.end.error() && !each.over) lose(each, each.end.error());
  }
  return !failure_;
}

void pipe_output::abort(std::error_code why) noexcept {
  if (std::exchange(closed_, true)) return;
  for (link& each : links_) {
    if (!each.over) drop(each, why);
  }
  abandon();
  leave_places();
  waiter_.end();
}

std::uint64_t pipe_output::taken() {
  look();
  std::uint64_t least = sent_;
  for (const link& each : links_) {
    if (!each.over || present() == 0) least = std::min(least, each.taken);
  }
  return least;
}

std::string pipe_output::error_text() const {
  if (failure_ && !failure_.text().empty()) return failure_.text();
  if (!error()) return {};
  return path_.name + ": writing behind " + pipe_bytes_text(sent_) + ": " + error().message();
}

}  // namespace ucx::detail
