#include "engine/stream_engine.hpp"

#include <algorithm>
#include <exception>
#include <limits>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// A source that is smaller than a buffer, and stays so, needs no more than its size; a window has
/// room for four.
std::size_t block_size(const stream_source& source, const stream_options& options) {
  const std::size_t most =
      std::min(std::max<std::size_t>(options.buffer_size, 1), options.window / 4);
  const std::uint64_t size = source.bytes().can_be_measured() ? most : source.limit();
  return static_cast<std::size_t>(std::clamp<std::uint64_t>(size, 1, most));
}

std::size_t usable(std::size_t depth) { return std::clamp<std::size_t>(depth, 1, 1024); }

/// How bytes are copied from and to memory of devices.
io_options copying(const stream_options& options) {
  return {options.timeout, false, options.cuda_stream};
}

}  // namespace

std::string stream_engine::why_not(const stream_options& options) {
  if (options.connections == 0 || options.connections > stream_options::max_connections) {
    return std::to_string(options.connections) + " connections, which may be 1 to " +
           std::to_string(stream_options::max_connections);
  }
  if (options.window >= stream_options::min_window &&
      options.window <= stream_options::max_window) {
    return {};
  }
  return "a window of " + std::to_string(options.window) + " bytes, which may be " +
         std::to_string(stream_options::min_window) + " to " +
         std::to_string(stream_options::max_window);
}

stream_engine::stream_engine(std::unique_ptr<byte_source> source, std::ios_base::openmode mode,
                             const stream_options& options, seek_limit limit)
    : source_(std::move(source), mode),
      seek_limit_(limit),
      in_flight_(options.window),
      pool_(block_size(source_, options),
            flow_window::short_piece(options.window, block_size(source_, options)), in_flight_),
      writing_(source_, pool_, in_flight_, usable(options.queue_depth), copying(options)),
      reading_(source_, writing_, pool_, in_flight_, usable(options.queue_depth),
               options.follow_timeout, copying(options)),
      exceptions_(std::uncaught_exceptions()) {
  // A file that is only appended to begins at its end; one that is read, too, at its beginning.
  const bool only_appends =
      source_.is_for(std::ios_base::app) && !source_.is_for(std::ios_base::in);
  if (only_appends || source_.is_for(std::ios_base::ate)) source_.move_to(source_.size());
}

stream_statistics stream_engine::statistics() const noexcept {
  stream_statistics told;
  told.in_flight = in_flight_.used();
  told.memory = pool_.allocated();
  told.window = in_flight_.bound();
  told.read_window = reading_.flow().size();
  told.write_window = writing_.flow().size();
  const flow_window& measured = reading_.flow().measured() ? reading_.flow() : writing_.flow();
  told.round_trip = measured.round_trip();
  told.bytes_per_second = static_cast<std::uint64_t>(measured.bytes_per_second());
  if (is_open()) told.connections = source_.bytes().lanes();
  return told;
}

void stream_engine::note_failure() noexcept {
  state_ = state::idle;  // without areas the next operation comes here, and clears the error
  failure_.take_handled();
  if (failure_.code() == errc::content_changed) reading_.doubt_end();
  if (!writing_.failed()) return;
  failure_.note_of_writes();
  if (!is_open()) return;
  try {
    writing_.rewind();
  } catch (...) {
    return;  // no memory for a new beginning: the next call reports the failed writes again
  }
  if (source_.bytes().is_unnamed() && source_.bytes().status()) tell_gone();
  writing_.note_lost(failure_);
}

/// The whole new file is lost, not only the bytes that were to be written.
void stream_engine::tell_gone() noexcept {
  try {
    failure_.explain(std::make_exception_ptr(ucx::error(
        failure_.code(),
        "writing a new file, which was not committed, and is gone with its connection: it has to "
        "be opened and written again; " +
            source_.bytes().description())));
  } catch (...) {  // no memory for that many words
  }
}

/// Returns whether what was lost is a connection that had been good for a while, waiting at the
/// end.
bool stream_engine::waited_well() noexcept {
  return reading_.had_waited() && failure_.code() == errc::connection_reset;
}

/// Has the source again, where that is what kept bytes from being read. Missing writes are told of
/// before anything else is done.
bool stream_engine::reopen() noexcept {
  if (source_.gave_up() || failure_.code() == errc::forked_child) return false;
  if (failure_.is_of_writes() || !source_.is_lost()) return false;
  try {
    writing_.check();
    reading_.leave_source();
    return source_.regain();
  } catch (...) {
    note_failure();
    return false;
  }
}

void stream_engine::throw_error() const {
  if (failure_.cause()) std::rethrow_exception(failure_.cause());
  source_.refuse(failure_.code(), "using");
}

std::string stream_engine::error_text() const {
  try {
    throw_error();
  } catch (const ucx::error& failure) {
    return failure.what();
  }
}

void stream_engine::enter(const char* get_next, const char* put_next) noexcept {
  if (get_next != nullptr) reading_.enter(get_next);
  if (put_next != nullptr) writing_.enter(put_next);
}

stream_engine::areas stream_engine::current_areas() const noexcept {
  areas shown;
  if (state_ == state::reading && reading_.area_next() != nullptr) {
    shown.get_begin = reading_.area_begin();
    shown.get_next = reading_.area_next();
    shown.get_end = reading_.area_end();
  }
  if (state_ == state::writing) {
    shown.put_next = writing_.area_next();
    shown.put_end = writing_.area_limit();
  }
  return shown;
}

/// To a read, a stream that is open for writing alone is at its end, as a file is. Nothing of what
/// is written changes by it, but `error()` says why.
stream_engine::outcome stream_engine::refuse_to_read() noexcept {
  state_ = state::idle;
  try {
    source_.refuse(errc::permission_denied, "reading what is open for writing alone:");
  } catch (...) {
    failure_.set(errc::permission_denied, std::current_exception());
  }
  return outcome::end_of_data;
}

void stream_engine::begin_reading() {
  source_.require(std::ios_base::in, "reading");
  writing_.check();
  writing_.send_area();
  reading_.begin();
  state_ = state::reading;
}

stream_engine::outcome stream_engine::refill() noexcept {
  if (!may_be_read()) return refuse_to_read();
  return attempt_to_read([this] {
    begin_reading();
    return reading_.refill() ? outcome::done : outcome::end_of_data;
  });
}

stream_engine::outcome stream_engine::read(std::span<std::byte> into, std::size_t& count) noexcept {
  count = 0;
  if (!may_be_read()) return refuse_to_read();
  const std::uint64_t start = source_.position();
  const outcome ended = attempt_to_read([&] {
    try {
      begin_reading();
      source_.check_place(into);
      const auto rest = into.subspan(static_cast<std::size_t>(source_.position() - start));
      return reading_.read(rest) ? outcome::done : outcome::end_of_data;
    } catch (...) {
      if (writing_.failed()) source_.move_to(start);  // from there on they are looked for
      throw;
    }
  });
  if (ended == outcome::failed && !failure_.is_of_writes()) source_.move_to(start);
  count = ended == outcome::failed ? 0 : static_cast<std::size_t>(source_.position() - start);
  return ended;
}

stream_engine::outcome stream_engine::step_back() noexcept {
  if (!may_be_read()) return refuse_to_read();
  const std::uint64_t start = source_.position();
  const outcome ended = attempt_to_read([&] {
    try {
      begin_reading();
      return reading_.step_back() ? outcome::done : outcome::end_of_data;
    } catch (...) {
      source_.move_to(start);
      throw;
    }
  });
  if (ended == outcome::end_of_data) {
    failure_.set(errc::out_of_range);
    state_ = state::idle;
  }
  return ended;
}

std::int64_t stream_engine::remaining() noexcept {
  if (!may_be_read()) return refuse_to_read(), -1;
  const outcome known = attempt([this] {
    source_.require(std::ios_base::in, "reading");
    return outcome::done;
  });
  return known == outcome::done ? static_cast<std::int64_t>(source_.left()) : -1;
}

stream_engine::outcome stream_engine::alter_get_area() noexcept {
  return attempt([this] {
    reading_.alter();
    return outcome::done;
  });
}

void stream_engine::begin_writing() {
  source_.require(std::ios_base::out, "writing");
  writing_.check();
  if (state_ == state::writing) return;
  if (source_.is_for(std::ios_base::app)) source_.move_to(source_.size());
  reading_.drop();  // it would be older than what is written now
  writing_.begin();
  state_ = state::writing;
}

stream_engine::outcome stream_engine::make_room() noexcept {
  const outcome ended = attempt([this] {
    begin_writing();
    writing_.open_area();
    return outcome::done;
  });
  if (ended == outcome::failed) writing_.note_lost(failure_);  // who asked has a byte to write
  return ended;
}

stream_engine::outcome stream_engine::write_out() noexcept {
  return attempt([this] {
    begin_writing();
    writing_.send_area();
    return outcome::done;
  });
}

std::size_t stream_engine::write(std::span<const std::byte> from) noexcept {
  std::uint64_t start = source_.position();
  const outcome ended = attempt([&] {
    begin_writing();
    start = source_.position();
    source_.check_place(from);
    writing_.write(from);
    return outcome::done;
  });
  if (ended == outcome::done) return from.size();
  if (!from.empty()) writing_.note_lost(failure_);
  const std::uint64_t reached = source_.position();
  return reached < start ? 0 : std::min<std::size_t>(from.size(), reached - start);
}

stream_engine::outcome stream_engine::sync() noexcept {
  return attempt([this] {
    source_.require({}, "flushing");
    reading_.drop();
    writing_.check();
    writing_.send_area();
    writing_.make_all_visible();
    reading_.forget_end();
    return outcome::done;
  });
}

stream_engine::outcome stream_engine::seek(std::int64_t offset,
                                           std::ios_base::seekdir base) noexcept {
  return attempt([&] {
    source_.require({}, "seeking in");
    writing_.check();
    source_.move_to(target(offset, base));
    state_ = state::idle;
    reading_.moved();
    return outcome::done;
  });
}

std::uint64_t stream_engine::target(std::int64_t offset, std::ios_base::seekdir base) const {
  std::uint64_t from = 0;
  if (base == std::ios_base::cur) from = source_.position();
  if (base == std::ios_base::end) from = source_.size();
  // No byte can be at the largest offset, for its end would have none: a file system is stricter.
  constexpr std::uint64_t farthest = std::numeric_limits<std::int64_t>::max() - 1;
  const std::uint64_t last =
      seek_limit_ == seek_limit::end ? source_.size() : std::max(source_.size(), farthest);
  // Neither subtraction wraps: `from` is at most `last`, and that at most the largest offset.
  const bool inside = offset < 0 ? -(offset + 1) < static_cast<std::int64_t>(from)
                                 : static_cast<std::uint64_t>(offset) <= last - from;
  if (!inside) source_.refuse(errc::out_of_range, "seeking outside of");
  return from + static_cast<std::uint64_t>(offset);
}

std::error_code stream_engine::close(ending how) noexcept {
  if (!is_open()) return {};
  if (how == ending::destroyed) source_.bytes().hurry();
  std::error_code failed = sync() == outcome::failed ? error() : std::error_code();
  if (!failed && writing_.lost()) {
    failed = writing_.lost().why();
    failure_.set(failed, writing_.lost().failure());
  }
  const bool unwinding = how == ending::destroyed && std::uncaught_exceptions() > exceptions_;
  if (!failed && !unwinding) {
    const outcome committed = attempt([this] {
      source_.bytes().commit();
      return outcome::done;
    });
    if (committed == outcome::failed) failed = error();
  }
  reading_.free_area();
  writing_.free_area();
  state_ = state::idle;
  pool_.release(source_.bytes().abandons_reads_at_once());
  source_.close();
  return failed;
}

}  // namespace ucx::detail
