#include "pipes/pipe_input.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// So many messages land where they are read; more, of a reader that is slow, wait in the room for
/// messages. Few, so that a reader that keeps up finds their memory in the processor's cache.
constexpr std::size_t most_slots = 8;

/// So many bytes at most are taken and not told to a writer, while the program is busy.
constexpr std::uint64_t most_untold = 2 * pipe_input::piece;

/// So many bytes of places all writers of this host have together; where none has two, there are
/// none.
constexpr std::size_t most_in_places = std::size_t{8} << 20U;

/// Before each slot, for a byte that is put back; a cache line, so that slots begin with one.
constexpr std::size_t slot_margin = 64;

}  // namespace

pipe_input::pipe_input(pipe_path& path, const pipe_options& options)
    : path_(path),
      options_(options),
      links_(path.peers.size()),
      waiter_(path, options.stop, 3 * path.peers.size()) {
  wanted_.reserve(3 * links_.size());
  for (std::size_t i = 0; i < links_.size(); ++i) {
    links_[i].peer = &path.peers[i];
    open(links_[i]);
  }
}

pipe_input::~pipe_input() { close(); }

/// Long messages of a window should not have to wait for each other.
std::size_t pipe_input::longest_of(const endpoint& writer) const {
  const bool fetches =
      options_.window >= 4 * fetched_piece && writer.report().long_messages == transfer_method::rma;
  return fetches ? fetched_piece : std::min(piece, options_.window);
}

void pipe_input::open(link& made) {
  const std::size_t size = longest_of(*made.peer);
  const std::size_t count = std::min(options_.window / size + 1, most_slots);
  const std::size_t of_slots = (slot_margin + size) * count;
  // Not filled: pages that are not used cost none.
  made.memory.reset(new std::byte[of_slots + pipe_end::size]);
  made.end_memory = {made.memory.get() + of_slots, pipe_end::size};
  made.slots.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    made.slots[i].bytes = {made.memory.get() + i * (slot_margin + size) + slot_margin, size};
    post(made, made.slots[i]);
  }
  made.end_receive = made.peer->start_receive(pipe_tag(pipe_said::end), made.end_memory,
                                              {.timeout = pipe_patience});
  const pipe_hello_bytes hello = encode(pipe_hello{
      .receives = static_cast<std::uint16_t>(count), .piece = size, .window = options_.window});
  std::error_code unusable;  // shows with the receives
  made.peer->post_send(pipe_tag(pipe_said::hello), hello, 0, short_pipe_send, unusable);
  offer_places(made);
}

/// Without them everything goes as messages.
void pipe_input::offer_places(link& to) {
  const std::size_t size = to.slots.front().bytes.size();
  const std::size_t share = most_in_places / links_.size() / size;
  const std::size_t count = std::min(options_.window / size + 1, share);
  if (count < 2 || !options_.context.share_memory) return;
  to.places = offered_places::make(*path_.driven, *to.peer, size, count);
  if (!to.places) return;
  to.places->pass_to(*to.peer);
  std::error_code unusable;  // shows with the receives
  to.peer->post_send(pipe_tag(pipe_said::ring), to.places->offer(), 0, short_pipe_send, unusable);
}

void pipe_input::post(link& of, slot& next) {
  next.receive = of.peer->start_receive(pipe_of_data(), next.bytes, {.timeout = pipe_patience});
}

pipe_input::outcome pipe_input::refill() {
  give_back();
  passing_.clear();
  if (closed_) {
    passing_ = errc::closed;
    return outcome::failed;
  }
  waiter_.begin(options_.timeout);
  for (;;) {
    const bool had_failed = static_cast<bool>(failure_);
    if (advance()) return outcome::done;
    if (had_failed) return outcome::failed;
    if (failure_) continue;  // of others something may have come meanwhile
    if (std::all_of(links_.begin(), links_.end(),
                    [](const link& each) { return each.is != stage::open; })) {
      return outcome::end_of_data;
    }
    for (link& each : links_) report_when_idle(each);
    passing_ = wait();
    if (passing_) return outcome::failed;
  }
}

/// Takes the next message of the next writer that has one; returns whether there was one. The loss
/// of one writer does not hide what has come of others.
bool pipe_input::advance() {
  for (std::size_t i = 1; i <= links_.size(); ++i) {
    const std::size_t next = (current_ + i) % links_.size();
    if (!look(links_[next])) continue;
    current_ = next;
    return true;
  }
  return false;
}

/// Returns whether a message of this writer became the area.
bool pipe_input::look(link& at) {
  if (at.is != stage::open) return false;
  slot& head = at.slots[at.head];
  bool filled = head.receive.done();
  // Behind the look at the data: what was said before the connection ended counts.
  look_for_end(at);
  if (at.is != stage::open) return false;
  // Everything that came before an end is here by now.
  filled = filled || head.receive.done();
  if (filled && !head.receive.error()) {
    accept(at, head);
    return at.is == stage::open;
  }
  if (at.end && at.end->status != 0) {
    lose(at, make_error_code(errc::connection_reset));
  } else if (at.end && at.end->total == at.received) {
    at.is = stage::ended;
  } else if (filled && head.receive.error() == errc::message_truncated) {
    break_protocol(at, "a message is longer than was agreed");
  } else if (filled) {
    lose(at, head.receive.error());
  }
  return false;
}

void pipe_input::look_for_end(link& at) {
  if (at.end || !at.end_receive.done()) return;
  if (at.end_receive.error()) {
    if (at.end_receive.error() != errc::message_truncated) return;  // the data's error says it
    return break_protocol(at, "its end is longer than an end");
  }
  const auto length = static_cast<std::size_t>(at.end_receive.received().length);
  at.end = decode_pipe_end(at.end_memory.first(length));
  if (!at.end) return break_protocol(at, "it ended in a way that is none");
  // One that gave up may not know of the last that it sent.
  if (at.end->status == 0 && at.end->total < at.received) {
    break_protocol(at, "it says that it has sent less than came");
  }
}

void pipe_input::accept(link& at, slot& filled) {
  const message_info about = filled.receive.received();
  std::span<std::byte> came = filled.bytes.first(static_cast<std::size_t>(about.length));
  const auto behind = static_cast<std::uint16_t>(pipe_number_of(about.tag) - at.number);
  if (behind >= 0x8000) return break_protocol(at, "a message of data came twice");
  // Those between were given up by the writer, who will say so, or were lost on their way.
  if (behind > 0) return lose(at, make_error_code(errc::message_withdrawn));
  ++at.number;
  const bool is_placed = pipe_said_of(about.tag) == pipe_said::placed;
  if (is_placed) {
    const std::optional<pipe_place> said = decode_pipe_place(came);
    came = said && at.places ? at.places->bytes(*said) : std::span<std::byte>();
    std::atomic_thread_fence(std::memory_order_acquire);
  }
  if (came.empty()) {
    return break_protocol(
        at, is_placed ? "it names a place that is none" : "a message of data is empty");
  }
  at.received += came.size();
  if (at.end && at.end->status == 0 && at.received > at.end->total) {
    return break_protocol(at, "more came than it says that it has sent");
  }
  area_ = came;
  is_in_place_ = is_placed;
  was_in_place_ = was_in_place_ || is_placed;
}

void pipe_input::count_taken() noexcept {
  links_[current_].taken += area_.size();
  taken_ += area_.size();
  if (!area_.empty()) {
    ++links_[current_].untold;
    if (is_in_place_) ++links_[current_].untold_places;
  }
  area_ = {};
}

void pipe_input::give_back() {
  if (area_.empty()) return;
  link& of = links_[current_];
  post(of, of.slots[of.head]);  // which may throw, and is tried again then
  count_taken();
  of.head = (of.head + 1) % of.slots.size();
  if (is_due(of)) report(of, pipe_said::taken);
}

bool pipe_input::is_due(const link& of) const noexcept {
  const std::uint64_t untold = of.taken - of.reported + pipe_message_cost * of.untold;
  const std::uint64_t longest = of.slots.front().bytes.size() + pipe_message_cost;
  // A writer has few places.
  if (of.places && 4 * of.untold_places >= of.places->count()) return true;
  return untold >= std::min<std::uint64_t>(options_.window / 4, most_untold) ||
         untold + longest > options_.window;
}

bool pipe_input::is_ready() {
  if (closed_) return false;
  give_back();
  bool all_ended = true;
  for (link& each : links_) {
    if (each.is != stage::open) continue;
    const request& head = each.slots[each.head].receive;
    if (head.done() && !head.error()) return true;
    look_for_end(each);
    const bool has_all = each.end && (each.end->status != 0 || each.end->total == each.received);
    all_ended = all_ended && (head.done() || has_all || each.is != stage::open);
  }
  if (all_ended || failure_) return true;
  // A program that only looks has taken what it has taken, too.
  for (link& each : links_) {
    if (each.is == stage::open) report_when_idle(each);
  }
  return false;
}

std::error_code pipe_input::wait() {
  wanted_.clear();
  for (link& each : links_) {
    if (each.is != stage::open) continue;
    wanted_.push_back(&each.slots[each.head].receive);
    // Also one that came since it was looked for: then there is nothing to wait for.
    const bool is_lost = each.end_receive.done() && each.end_receive.error();
    if (!each.end && !is_lost) wanted_.push_back(&each.end_receive);
    // One that has gone by now, too: it kept back what is to be told.
    if (each.reported != each.taken) wanted_.push_back(&each.report);
  }
  return waiter_.wait(wanted_);
}

/// If it throws nothing was told: it is told later.
template <class Send>
void pipe_input::tell(link& to, Send send) {
  std::atomic_thread_fence(std::memory_order_release);  // before a place is filled again
  send();
  to.reported = to.taken;
  to.untold = 0;
  to.untold_places = 0;
}

/// One at a time: a writer that does not listen is not told of each message.
void pipe_input::report_when_idle(link& to) {
  if (to.reported == to.taken || !to.report.done()) return;
  tell(to, [&] {
    to.report = to.peer->start_send(pipe_tag(pipe_said::taken), encode_pipe_count(to.taken),
                                    short_pipe_send);
  });
}

void pipe_input::report(link& to, pipe_said what) {
  tell(to, [&] {
    std::error_code unusable;  // shows with the receives
    to.peer->post_send(pipe_tag(what), encode_pipe_count(to.taken), 0, short_pipe_send, unusable);
  });
}

void pipe_input::lose(link& at, std::error_code why) {
  at.is = stage::lost;
  std::string text = path_.name + ": ";
  if (at.end && at.end->status != 0) {
    text += "the writer gave up (" + pipe_status_error(at.end->status).message() + ")";
  } else {
    text += "the writer was lost (" + why.message() + ")";
  }
  failure_.set(make_error_code(errc::connection_reset),
               text + " after " + pipe_bytes_text(at.received) + ", which is not all");
}

void pipe_input::break_protocol(link& at, const char* what) {
  at.is = stage::lost;
  failure_.set(make_error_code(errc::protocol_error), path_.name + ": after " +
                                                          pipe_bytes_text(at.received) +
                                                          " the writer broke the rules: " + what);
}

void pipe_input::give_up(std::error_code why) noexcept {
  for (link& each : links_) each.is = stage::lost;
  failure_.set(why, {});
}

void pipe_input::close(std::size_t unread) noexcept {
  if (std::exchange(closed_, true)) return;
  area_ = area_.first(area_.size() - std::min(unread, area_.size()));
  const bool some_left = unread > 0;
  if (!links_.empty()) count_taken();
  for (link& each : links_) {
    try {
      if (each.is != stage::ended || some_left) report(each, pipe_said::left);
    } catch (...) {  // without memory the end of the connection says it
    }
    if (path_.woken) {
      for (slot& one : each.slots) one.receive.leave(each.memory);
      each.end_receive.leave(each.memory);
      each.report.leave();
    }
    each.slots.clear();
    each.places.reset();
    each.end_receive = {};
    each.report = {};
  }
  waiter_.end();
}

std::string pipe_input::error_text() const {
  if (failure_ && !failure_.text().empty()) return failure_.text();
  if (!error()) return {};
  return path_.name + ": reading behind " + pipe_bytes_text(taken_) + ": " + error().message();
}

}  // namespace ucx::detail
