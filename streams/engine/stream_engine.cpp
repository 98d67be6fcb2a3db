#include "engine/stream_engine.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_copy.hpp"

namespace ucx::detail {
namespace {

/// Positions are signed; no source is larger than they can say.
std::uint64_t addressable(std::uint64_t size) {
  return std::min<std::uint64_t>(size, std::numeric_limits<std::int64_t>::max());
}

/// A source that is smaller than a buffer, and stays so, needs no more than its size; a window has
/// room for four.
std::size_t block_size(const byte_source& source, const stream_options& options) {
  const std::size_t most =
      std::min(std::max<std::size_t>(options.buffer_size, 1), options.window / 4);
  const std::uint64_t size = source.can_be_measured() ? most : addressable(source.limit());
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(size, 1, most));
}

std::size_t usable(std::size_t depth) { return std::clamp<std::size_t>(depth, 1, 1024); }

}  // namespace

std::string stream_engine::why_not(const stream_options& options) {
  if (options.lanes == 0 || options.lanes > stream_options::most_lanes) {
    return std::to_string(options.lanes) + " lanes, which may be 1 to " +
           std::to_string(stream_options::most_lanes);
  }
  if (options.window >= stream_options::least_window &&
      options.window <= stream_options::most_window) {
    return {};
  }
  return "a window of " + std::to_string(options.window) + " bytes, which may be " +
         std::to_string(stream_options::least_window) + " to " +
         std::to_string(stream_options::most_window);
}

stream_engine::stream_engine(std::unique_ptr<byte_source> source, std::ios_base::openmode mode,
                             const stream_options& options, seek_limit limit)
    : source_(std::move(source)),
      mode_(mode),
      seek_limit_(limit),
      size_(addressable(source_->size())),
      limit_(addressable(source_->limit())),
      visible_size_(size_),
      grows_(limit_ > size_),
      in_flight_(options.window),
      pool_(block_size(*source_, options),
            flow_window::short_piece(options.window, block_size(*source_, options)), in_flight_),
      reads_(*source_, pool_, in_flight_, pool_.block_size(), usable(options.depth)),
      writes_(*source_, pool_, in_flight_, pool_.block_size(), usable(options.depth)),
      end_(*source_, options.follow),
      copying_{options.timeout, false, options.cuda_stream},
      exceptions_(std::uncaught_exceptions()) {
  // A file that is only appended to begins at its end; one that is read, too, at its beginning.
  const bool only_appends = (mode & std::ios_base::app) != 0 && !is_readable();
  if (only_appends || (mode & std::ios_base::ate) != 0) position_ = size_;
}

stream_statistics stream_engine::statistics() const noexcept {
  stream_statistics told;
  told.in_flight = in_flight_.used();
  told.memory = pool_.allocated();
  told.bound = in_flight_.bound();
  told.read_window = reads_.flow().size();
  told.write_window = writes_.flow().size();
  const flow_window& measured = reads_.flow().measured() ? reads_.flow() : writes_.flow();
  told.round_trip = measured.round_trip();
  told.bytes_per_second = static_cast<std::uint64_t>(measured.bytes_per_second());
  if (source_) told.lanes = source_->lanes();
  return told;
}

void stream_engine::note_failure() noexcept {
  state_ = state::idle;  // without areas the next operation comes here, and clears the error
  failure_ = nullptr;
  try {
    throw;
  } catch (const ucx::error& failure) {
    error_ = failure.code();
    failure_ = std::current_exception();
  } catch (const std::bad_alloc&) {
    error_ = errc::no_memory;
  } catch (...) {
    error_ = errc::unexpected;
  }
  if (error_ == errc::content_changed) end_.doubt();
  told_of_writes_ = writes_.failed();
  if (told_of_writes_) {
    try {
      position_ = std::min(size_, writes_.rewind(put_.length > 0 ? put_.offset : position_));
      if (source_->is_unnamed() && source_->status()) note_gone();
    } catch (...) {
      return;  // no memory for a new beginning: the next call reports the failed writes again
    }
    pool_.give_back(std::move(put_.memory));
    put_.length = 0;
    size_ = std::max({visible_size_, writes_.confirmed_end(), position_});
    note_lost();
  }
}

/// What was lost is more than what was to be written.
void stream_engine::note_gone() {
  failure_ = std::make_exception_ptr(ucx::error(
      error_,
      "writing a new file, which was not committed, and is gone with its connection: it has to be "
      "opened and written again; " +
          source_->description()));
}

/// Returns whether what was lost is a connection that had been good for a while, waiting at the
/// end.
bool stream_engine::waited_well() noexcept {
  return end_.had_waited() && error_ == errc::connection_reset;
}

/// Reads again what the failure kept from being read, where the source can be had back.
bool stream_engine::reopen() noexcept {
  if (gave_up_ || error_ == errc::forked_child) return false;
  if (told_of_writes_ || !source_ || !source_->recovers() || !source_->status()) return false;
  try {
    return regain_source();
  } catch (...) {
    note_failure();
    return false;
  }
}

/// Returns whether the source was lost, and is there again. What was written and is missing is told
/// of before anything else is done.
bool stream_engine::regain_source() {
  if (!source_->recovers() || !source_->status()) return false;
  writes_.check();
  reads_.drop();
  if (!get_.memory) drop_get_area();
  gave_up_ = true;
  const bool is_back = source_->recover();
  gave_up_ = false;
  if (!is_back) return false;
  const bool writes = (mode_ & std::ios_base::out) != 0;
  if (!writes) take_size(std::max(size_, source_->size()));
  return true;
}

void stream_engine::throw_error() const {
  if (failure_) std::rethrow_exception(failure_);
  refuse(error_, "using");
}

std::string stream_engine::error_text() const {
  try {
    throw_error();
  } catch (const ucx::error& failure) {
    return failure.what();
  }
}

void stream_engine::refuse(std::error_code why, std::string_view what) const {
  throw ucx::error(why, std::string(what) + " " +
                            (source_ ? source_->description() : std::string("a closed stream")));
}

/// No part of what is in two places is copied: where the first ends, nobody can tell.
void stream_engine::check_place(std::span<const std::byte> bytes) const {
  std::error_code misplaced;
  detail::is_copied_by_driver(bytes.data(), bytes.size(), misplaced);
  if (misplaced) refuse(misplaced, "memory of two places for");
}

void stream_engine::require(std::ios_base::openmode wanted, std::string_view what) const {
  if (!source_) refuse(errc::closed, what);
  if (is_forked_child()) refuse(errc::forked_child, what);
  if ((mode_ & wanted) != wanted) refuse(errc::permission_denied, what);
}

void stream_engine::enter(const char* get_next, const char* put_next) noexcept {
  if (get_next != nullptr) {
    position_ = get_.offset + static_cast<std::size_t>(get_next - get_.begin());
  }
  if (put_next != nullptr) {
    put_.length = static_cast<std::size_t>(put_next - put_.begin());
    position_ = put_.end();
    note_taken(put_.offset);
  }
}

stream_engine::areas stream_engine::current_areas() const noexcept {
  areas shown;
  if (state_ == state::reading && get_.bytes != nullptr && position_ >= get_.offset &&
      position_ <= get_.end()) {
    shown.get_begin = get_.begin();
    shown.get_next = get_.begin() + (position_ - get_.offset);
    shown.get_end = get_.begin() + get_.length;
  }
  if (state_ == state::writing && put_.memory) {
    shown.put_next = put_.begin() + put_.length;
    shown.put_end = put_.begin() + put_capacity();
  }
  return shown;
}

/// What is open for writing alone is at its end for who reads, as a file is, and nothing of what is
/// written changes by it; but `error()` says why.
stream_engine::outcome stream_engine::refuse_to_read() noexcept {
  state_ = state::idle;
  error_ = errc::permission_denied;
  told_of_writes_ = false;
  try {
    refuse(errc::permission_denied, "reading what is open for writing alone:");
  } catch (...) {
    failure_ = std::current_exception();
  }
  return outcome::end_of_data;
}

stream_engine::outcome stream_engine::refill() noexcept {
  if (!may_be_read()) return refuse_to_read();
  return attempt_to_read([this] {
    begin_reading();
    if (position_ >= size_ && !look_behind_end()) return outcome::end_of_data;
    if (!get_.holds(position_)) read_beyond_get_area({});
    return outcome::done;
  });
}

stream_engine::outcome stream_engine::read(std::span<std::byte> into, std::size_t& count) noexcept {
  count = 0;
  if (!may_be_read()) return refuse_to_read();
  const std::uint64_t start = position_;
  const outcome ended = attempt_to_read([&] {
    try {
      begin_reading();
      check_place(into);
      while (position_ - start < into.size()) {
        if (position_ >= size_ && !look_behind_end()) return outcome::end_of_data;
        const auto rest = into.subspan(static_cast<std::size_t>(position_ - start));
        const auto part = copy_from_get_area(rest.first(
            static_cast<std::size_t>(std::min<std::uint64_t>(rest.size(), left_from(position_)))));
        if (!part.empty()) read_beyond_get_area(part);
      }
      return outcome::done;
    } catch (...) {
      if (writes_.failed()) position_ = start;  // from there on they are looked for
      throw;
    }
  });
  if (ended == outcome::failed && !told_of_writes_) position_ = start;
  count = ended == outcome::failed ? 0 : static_cast<std::size_t>(position_ - start);
  return ended;
}

stream_engine::outcome stream_engine::step_back() noexcept {
  if (!may_be_read()) return refuse_to_read();
  const std::uint64_t start = position_;
  const outcome ended = attempt_to_read([&] {
    try {
      begin_reading();
      if (position_ == 0 || position_ > size_) return outcome::end_of_data;
      const std::uint64_t before = position_ - 1;
      if (!get_.holds(before)) {
        // Room to both sides: who goes back once may do so again, and then comes forward.
        const std::size_t room = std::min(pool_.block_size(), read_ahead::first_unit) / 2;
        position_ = before - std::min<std::uint64_t>(before, room);
        read_beyond_get_area({});
      }
      position_ = before;
      if (!get_.holds(before)) read_beyond_get_area({});
      return outcome::done;
    } catch (...) {
      position_ = start;
      throw;
    }
  });
  if (ended == outcome::end_of_data) {
    error_ = errc::out_of_range;
    state_ = state::idle;
  }
  return ended;
}

std::int64_t stream_engine::remaining() noexcept {
  if (!may_be_read()) return refuse_to_read(), -1;
  const outcome known = attempt([this] {
    require(std::ios_base::in, "reading");
    return outcome::done;
  });
  return known == outcome::done ? static_cast<std::int64_t>(left_from(position_)) : -1;
}

/// A read has come to the end that is known. Returns whether there is more behind it by now.
bool stream_engine::look_behind_end() {
  if (!end_.reached()) return false;
  writes_.flush();  // who is asked has to know of them
  const std::uint64_t before = size_;
  take_size(end_.measure(before));
  if (size_ < before) {
    const std::string less = std::to_string(before - size_);
    refuse(errc::content_changed, less + " bytes were cut off: reading");
  }
  return position_ < size_;
}

/// Some of what is known may be gone: who was told so reads what there is.
void stream_engine::look_at_end() {
  reads_.drop();
  drop_get_area();
  writes_.flush();
  take_size(end_.look());
}

void stream_engine::take_size(std::uint64_t now) { size_ = visible_size_ = addressable(now); }

void stream_engine::begin_reading() {
  require(std::ios_base::in, "reading");
  writes_.check();
  send_put_area();
  // What lies in place is there even when it is no longer true.
  const bool in_place = get_.bytes != nullptr && !get_.memory;
  if (in_place && get_.holds(position_) && source_->status()) drop_get_area();
  if (end_.doubtful()) look_at_end();
  state_ = state::reading;
}

/// Reads `into`, or without one at least a byte into the get area.
void stream_engine::read_beyond_get_area(std::span<std::byte> into) {
  if (source_->in_place()) return look_in_place(into);
  if (size_ > visible_size_) make_all_visible();
  reads_.begin(position_, into);
  do {
    const std::uint64_t end = writes_.readable_end(position_, size_);
    const auto part =
        into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), end - position_)));
    make_room_to_read();
    reads_.ask(position_, part, end);
    read_ahead::piece arrived = reads_.take_first();
    if (arrived.memory) {
      keep_in_get_area(std::move(arrived));
      into = copy_from_get_area(into);
    } else {
      position_ += arrived.length;
      into = into.subspan(arrived.length);
    }
  } while (!into.empty());
}

/// The same where the bytes are here: the get area is the source's own memory, a buffer's size of
/// it, so that what ends the source is noticed now and then.
void stream_engine::look_in_place(std::span<std::byte> into) {
  if (into.empty()) {
    std::uint64_t first = position_ - position_ % pool_.block_size();
    if (writes_.readable_end(first, size_) <= position_) first = position_;
    const std::uint64_t last =
        std::min(writes_.readable_end(position_, size_), first + pool_.block_size());
    const auto there = source_->view(first, static_cast<std::size_t>(last - first));
    drop_get_area();
    // Nobody writes there: alter_get_area() makes a copy first.
    get_.bytes = const_cast<std::byte*>(there.data());
    get_.offset = first;
    get_.length = there.size();
  }
  while (!into.empty()) {
    const std::uint64_t end = writes_.readable_end(position_, position_ + into.size());
    const auto there = source_->view(position_, static_cast<std::size_t>(end - position_));
    copy_memory(into.data(), there.data(), there.size(), copying_);
    position_ += there.size();
    into = into.subspan(there.size());
  }
}

stream_engine::outcome stream_engine::alter_get_area() noexcept {
  return attempt([this] {
    if (!get_.memory) {
      const auto at = static_cast<std::size_t>(position_ - get_.offset);
      const std::size_t length = std::min(get_.length, pool_.block_size());
      block copy = pool_.take(length);
      // The area is a buffer's size at most; were it longer, the position would have to be in it.
      const std::size_t first = at < length ? 0 : at + 1 - length;
      std::memcpy(copy.get(), get_.bytes + first, length);
      get_.memory = std::move(copy);
      get_.bytes = get_.memory.get();
      get_.offset += first;
      get_.length = length;
    }
    get_altered_ = true;
    return outcome::done;
  });
}

/// What was written, or given up, and is still on its way leaves the first read its place.
void stream_engine::make_room_to_read() {
  while (reads_.empty() && in_flight_.left() < reads_.flow().piece() &&
         (pool_.wait_for_parked() || writes_.wait_for_first())) {
  }
}

void stream_engine::keep_in_get_area(read_ahead::piece&& arrived) noexcept {
  pool_.give_back(std::move(get_.memory));
  get_.memory = std::move(arrived.memory);
  get_.bytes = get_.memory.get();
  get_.offset = arrived.offset;
  get_.length = arrived.length;
  get_altered_ = false;
}

std::span<std::byte> stream_engine::copy_from_get_area(std::span<std::byte> into) {
  if (into.empty() || !get_.holds(position_)) return into;
  const auto at = static_cast<std::size_t>(position_ - get_.offset);
  const std::size_t copied = std::min(into.size(), get_.length - at);
  copy_memory(into.data(), get_.bytes + at, copied, copying_);
  position_ += copied;
  return into.subspan(copied);
}

void stream_engine::drop_get_area() noexcept {
  pool_.give_back(std::move(get_.memory));
  get_.bytes = nullptr;
  get_.length = 0;
  get_altered_ = false;
}

stream_engine::outcome stream_engine::sync() noexcept {
  return attempt([this] {
    require({}, "flushing");
    reads_.drop();
    drop_get_area();
    writes_.check();
    send_put_area();
    make_all_visible();
    end_.forget();
    return outcome::done;
  });
}

stream_engine::outcome stream_engine::seek(std::int64_t offset,
                                           std::ios_base::seekdir base) noexcept {
  return attempt([&] {
    require({}, "seeking in");
    writes_.check();
    position_ = target(offset, base);
    state_ = state::idle;
    if (get_altered_) drop_get_area();
    return outcome::done;
  });
}

std::uint64_t stream_engine::target(std::int64_t offset, std::ios_base::seekdir base) const {
  std::uint64_t from = 0;
  if (base == std::ios_base::cur) from = position_;
  if (base == std::ios_base::end) from = size_;
  // No byte can be at the largest offset, for its end would have none: a file system is stricter.
  constexpr std::uint64_t farthest = std::numeric_limits<std::int64_t>::max() - 1;
  const std::uint64_t last = seek_limit_ == seek_limit::end ? size_ : std::max(size_, farthest);
  // Neither subtraction wraps: `from` is at most `last`, and that at most the largest offset.
  const bool inside = offset < 0 ? -(offset + 1) < static_cast<std::int64_t>(from)
                                 : static_cast<std::uint64_t>(offset) <= last - from;
  if (!inside) refuse(errc::out_of_range, "seeking outside of");
  return from + static_cast<std::uint64_t>(offset);
}

std::error_code stream_engine::close(ending how) noexcept {
  if (!source_) return {};
  if (how == ending::destroyed) source_->hurry();
  std::error_code failed = sync() == outcome::failed ? error_ : std::error_code();
  if (!failed && lost_) {
    error_ = failed = lost_.why();
    failure_ = lost_.failure();
  }
  const bool unwinding = how == ending::destroyed && std::uncaught_exceptions() > exceptions_;
  if (!failed && !unwinding) {
    const outcome committed = attempt([this] {
      source_->commit();
      return outcome::done;
    });
    if (committed == outcome::failed) failed = error_;
  }
  get_ = area();
  put_ = area();
  state_ = state::idle;
  pool_.release(source_->abandons_reads_at_once());
  source_.reset();
  return failed;
}

}  // namespace ucx::detail
