#include "pipes/async_pipe_core.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "pipes/pipe_opening.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::detail {
namespace {

/// So many requests at a time take no memory, after warm-up.
constexpr std::size_t most_spare = 64;

constexpr std::string_view use_after_end = "using a pipe that is not open";

/// Empty without memory.
std::string words_of_end() noexcept {
  try {
    return std::string(use_after_end);
  } catch (const std::bad_alloc&) {
    return {};
  }
}

/// Returns the text of an error without the words of the code, which are added again.
std::string own_text(const error& failed) {
  const std::string all = failed.what();
  const std::string code = ": " + failed.code().message();
  return all.ends_with(code) ? all.substr(0, all.size() - code.size()) : all;
}

}  // namespace

/// The end of a connection waits, except in a round.
template <class Connections>
void async_pipe_core::let_go(Connections what) noexcept {
  if (!is_in_round()) let_go_in_round(driven_, std::move(what));
}

async_pipe_core::async_pipe_core(worker& driven, std::string name, std::ios_base::openmode mode,
                                 const pipe_options& options)
    : driven_(driven),
      name_(std::move(name)),
      words_(words_of(name_)),
      mode_(mode),
      options_(options) {}

async_pipe_core::~async_pipe_core() { give_up(); }

async_pipe_core::words async_pipe_core::words_of(const std::string& name) {
  constexpr const char* all[] = {"writing", "flushing", "ending its output",
                                 "closing", "reading",  "opening a pipe"};
  words made;
  for (std::size_t i = 0; i < made.size(); ++i) {
    made[i] = std::make_shared<const std::string>(name + ": " + all[i]);
  }
  return made;
}

request async_pipe_core::begin(request_source& by, doing what, std::chrono::nanoseconds timeout) {
  if (timeout == timeout.zero()) timeout = timeout.max();
  // The request keeps this alive.
  return by.start(driven_, words_[static_cast<std::size_t>(what)], timeout,
                  [self = shared_from_this()](std::error_code) { self->wake(); });
}

/// Returns a list of one.
template <class Request>
std::list<Request> async_pipe_core::take_spare(std::list<Request>& spare) {
  std::list<Request> made;
  const std::lock_guard guard(arriving_);
  if (spare.empty()) {
    made.emplace_back();
  } else {
    made.splice(made.end(), spare, spare.begin());
  }
  return made;
}

/// Empties `made`: its last request has begun.
template <class Request>
void async_pipe_core::add(std::list<Request>& made, std::list<Request>& to) noexcept {
  const std::lock_guard guard(arriving_);
  to.splice(to.end(), made);
}

template <class Request>
void async_pipe_core::give_back(std::list<Request>& over, std::list<Request>& spare) noexcept {
  if (over.empty()) return;
  for (Request& each : over) each = Request();  // not under the lock
  const std::lock_guard guard(arriving_);
  while (!over.empty() && spare.size() < most_spare) {
    spare.splice(spare.end(), over, over.begin());
  }
  over.clear();
}

request async_pipe_core::start_open(async_pipe& made, std::unique_ptr<pipe_path> path) {
  path_ = std::move(path);
  path_->woken = weak_from_this();
  opening begun;
  return begin_opening(made, begun);
}

request async_pipe_core::start_open(async_pipe& made, const url& where) {
  opening begun;
  begun.where = where;
  return begin_opening(made, begun);
}

request async_pipe_core::begin_opening(async_pipe& made, opening& begun) {
  begun.made = &made;
  // Each part has its time.
  request started = begin(begun.source, doing::open, std::chrono::nanoseconds::zero());
  if (started.done()) return started;
  opening_ = std::move(begun);
  if (options_.stop.stop_possible()) {
    on_stop_.emplace(options_.stop, [this, held = weak_from_this()] {
      try {
        driven_.post([held] {
          if (const auto here = held.lock()) here->wake();
        });
      } catch (...) {  // without memory it ends with the next step
      }
    });
  }
  has_begun_.store(true, std::memory_order_release);
  look();
  return started;
}

request async_pipe_core::start_read(std::span<std::byte> into, std::size_t& count) {
  if (!reads(mode_)) {
    return request_source::failed(errc::permission_denied,
                                  name_ + ": reading what is only written");
  }
  if (!is_open()) return request_source::failed(errc::closed, std::string(use_after_end));
  std::error_code misplaced;
  if (!into.empty()) detail::is_copied_by_driver(into.data(), into.size(), misplaced);
  if (misplaced) {
    return request_source::failed(misplaced, name_ + ": reading into memory of two places");
  }
  std::list<async_read> made = take_spare(spare_reads_);
  made.front().into = into;
  made.front().count = &count;
  request begun = begin(made.front().source, doing::read, options_.timeout);
  if (begun.done()) return begun;
  add(made, new_reads_);
  look();
  return begun;
}

request async_pipe_core::start_output(async_output_kind what, std::span<const std::byte> from) {
  if (!writes(mode_) && what == async_output_kind::write) {
    return request_source::failed(errc::permission_denied, name_ + ": writing what is only read");
  }
  const bool closes = what == async_output_kind::close;
  if (!is_open() && closes) return {};
  if (!is_open()) return request_source::failed(errc::closed, std::string(use_after_end));
  std::error_code misplaced;
  if (!from.empty()) detail::is_copied_by_driver(from.data(), from.size(), misplaced);
  if (misplaced) {
    return request_source::failed(misplaced, name_ + ": writing out of memory of two places");
  }
  std::list<async_output> made = take_spare(spare_outputs_);
  made.front().what = what;
  made.front().from = from;
  request begun = begin(made.front().source, static_cast<doing>(what), options_.timeout);
  if (begun.done()) return begun;
  if (closes && !is_open_.exchange(false)) return {};  // nothing throws from here on
  add(made, new_outputs_);
  look();
  return begun;
}

void async_pipe_core::abort() noexcept {
  is_open_ = false;
  aborted_ = true;
  look();
}

void async_pipe_core::leave() noexcept {
  left_ = true;
  look();
}

void async_pipe_core::step() noexcept {
  if (!has_begun_.load(std::memory_order_acquire)) return;
  try {
    take_arrivals();
    advance();
  } catch (const std::bad_alloc&) {
    fail_all(errc::no_memory);
  } catch (const error& failed) {
    fail_all(failed.code());
  } catch (const std::exception&) {  // of the system's random numbers
    fail_all(errc::io_error);
  }
  note_counts();
  give_back(reads_over_, spare_reads_);
  give_back(outputs_over_, spare_outputs_);
}

void async_pipe_core::take_arrivals() noexcept {
  const std::lock_guard guard(arriving_);
  for (const async_output& each : new_outputs_) {
    closes_ = closes_ || each.what == async_output_kind::close;
  }
  reads_.splice(reads_.end(), new_reads_);
  outputs_.splice(outputs_.end(), new_outputs_);
}

void async_pipe_core::advance() {
  if (aborted_ || (left_ && !closes_) || stage_ == stage::over) return give_up();
  if (stage_ == stage::opening) open();
  if (stage_ != stage::open) return;
  if (closes_) {
    if (in_) in_->close();
    end_reads();
  } else if (in_) {
    in_->serve(reads_, reads_over_);
  }
  while (!outputs_.empty()) {
    async_output& next = outputs_.front();
    if (out_ ? !out_->serve(next) : !serve_without_output(next)) return;
    if (next.what == async_output_kind::close) return close(next);
    outputs_over_.splice(outputs_over_.end(), outputs_, outputs_.begin());
  }
}

/// Nothing is written: there is nothing to flush, or to end.
bool async_pipe_core::serve_without_output(async_output& next) {
  if (next.what != async_output_kind::close) next.source.complete();
  return true;
}

void async_pipe_core::open() {
  if (opening_->source.done()) return give_up();
  try {
    if (!meet() || !make_ends()) return;
  } catch (const error& failed) {
    const std::string text = own_text(failed);
    opening_->source.complete(failed.code(), text);
    return give_up();
  }
  if (!opening_->source.claim()) return give_up();
  stage_ = stage::open;
  is_open_ = true;
  *opening_->made = async_pipe(shared_from_this());
  opening_->source.complete();
  opening_.reset();
}

/// Returns whether the other ends are there.
bool async_pipe_core::meet() {
  if (path_) return true;
  if (!meeting_) {
    meeting_.emplace(driven_, weak_from_this(), *opening_->where, role_of(mode_), options_);
  }
  while (!meeting_->advance()) {
    if (!meeting_->wait()) return false;
  }
  path_ = meeting_->take();
  let_go(meeting_->leave_server());
  meeting_.reset();
  return true;
}

/// Returns whether they read what this end writes.
bool async_pipe_core::make_ends() {
  if (!in_ && !out_) {
    pipe_options rest = options_behind(*path_, options_);
    rest.timeout = rest.timeout.zero();  // requests have it
    if (reads(mode_)) in_.emplace(*path_, rest);
    if (writes(mode_)) out_.emplace(*path_, rest);
  }
  if (!out_ || out_->output().open()) return true;
  if (out_->output().would_wait()) return false;
  throw error(out_->output().error(), out_->output().error_text());
}

/// Its output is over: closes the connections, and ends it with them.
void async_pipe_core::close(async_output& last) {
  if (last.source.done()) return give_up();
  const std::error_code outcome = out_ ? out_->result() : std::error_code();
  if (closing_.empty()) {
    for (endpoint& each : path_->peers) {
      closing_.push_back(each.start_close(outcome ? close_mode::abort : close_mode::flush));
    }
  }
  bool are_closed = true;
  for (pipe_request& each : closing_) {
    if (each.done()) continue;
    are_closed = false;
    each.wake(weak_from_this());
  }
  if (!are_closed) return;
  // Everything that matters was confirmed before.
  last.source.complete(outcome, out_ ? out_->result_text() : std::string());
  give_up();
}

void async_pipe_core::end_reads() noexcept {
  for (async_read& each : reads_) each.source.complete(errc::closed, words_of_end());
  reads_.clear();
}

/// Those under way fail, and the pipe goes on as far as it can.
void async_pipe_core::fail_all(std::error_code why) noexcept {
  if (stage_ == stage::opening) {
    if (opening_) opening_->source.complete(why);
    return give_up();
  }
  for (async_read& each : reads_) each.source.complete(why);
  for (async_output& each : outputs_) each.source.complete(why);
  if (!reads_.empty() || !outputs_.empty()) wake();  // which looks after what they leave behind
}

/// Ends all that is left, without waiting.
void async_pipe_core::give_up() noexcept {
  const bool was_over = std::exchange(stage_, stage::over) == stage::over;
  is_open_ = false;
  if (!was_over) {
    note_counts();
    on_stop_.reset();
    if (meeting_) let_go(meeting_->leave_server());
    meeting_.reset();
    if (in_) in_->close();
    if (out_) out_->abort();
    for (pipe_request& each : closing_) each.leave();
    closing_.clear();
    in_.reset();
    out_.reset();
    if (path_ && !path_->peers.empty()) let_go(std::move(path_->peers));
    path_.reset();
  }
  if (opening_) opening_->source.complete(errc::closed, words_of_end());
  opening_.reset();
  end_reads();
  for (async_output& each : outputs_) {
    each.source.complete(errc::closed, words_of_end());
  }
  outputs_.clear();
}

void async_pipe_core::note_counts() noexcept {
  if (in_) received_.store(in_->received(), std::memory_order_relaxed);
  if (out_) sent_.store(out_->output().sent(), std::memory_order_relaxed);
}

}  // namespace ucx::detail
