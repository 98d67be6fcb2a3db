#include "ucx/pipe_stream.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "files/kept_for_parent.hpp"
#include "pipes/pipe_engine.hpp"
#include "pipes/pipe_opening.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx {

template <>
std::string_view detail::enum_name(slow_reader_policy value) noexcept {
  switch (value) {
    case slow_reader_policy::wait:
      return "wait";
    case slow_reader_policy::drop:
      return "drop";
  }
  return "unknown";
}

namespace {

using detail::pipe_input;
using detail::pipe_output;
using detail::reads;
using detail::writes;

constexpr const char* use_of_nothing = "using a pipe that is not open";

using engine = std::unique_ptr<detail::pipe_engine>;

/// Returns the engine, or throws why there is none, or tells it in `ec`.
engine made_or_end(detail::engine_or_error made, std::error_code& ec) {
  const auto* const failed = std::get_if<error>(&made);
  if (failed != nullptr && &ec == &throws) throw *failed;
  if (&ec != &throws) ec = failed != nullptr ? failed->code() : std::error_code();
  return failed != nullptr ? nullptr : std::get<engine>(std::move(made));
}

}  // namespace

pipe_streambuf::pipe_streambuf() = default;

pipe_streambuf::pipe_streambuf(const url& where, std::ios_base::openmode mode,
                               const pipe_options& options, std::error_code& ec)
    : engine_(made_or_end(detail::open_at(where, mode, options), ec)) {
  if (engine_) show_put_area();
}

pipe_streambuf::pipe_streambuf(worker& driven, endpoint connection, std::ios_base::openmode mode,
                               const pipe_options& options, std::error_code& ec)
    : engine_(made_or_end(detail::open_over(driven, std::move(connection), mode, options), ec)) {
  if (engine_) show_put_area();
}

pipe_streambuf::pipe_streambuf(pipe_streambuf&& other) noexcept
    : std::streambuf(other), engine_(std::move(other.engine_)) {
  other.setg(nullptr, nullptr, nullptr);
  other.setp(nullptr, nullptr);
}

pipe_streambuf& pipe_streambuf::operator=(pipe_streambuf&& other) noexcept {
  pipe_streambuf taken(std::move(other));
  swap(taken);
  return *this;
}

pipe_streambuf::~pipe_streambuf() {
  if (detail::keep_for_parent(engine_) || !is_open()) return;
  if (engine_->is_unwinding()) {
    abort();
  } else {
    try {
      std::error_code unreported;
      close(unreported);
    } catch (...) {  // without memory
      abort();
    }
  }
}

void pipe_streambuf::swap(pipe_streambuf& other) noexcept {
  std::streambuf::swap(other);
  engine_.swap(other.engine_);
}

std::span<const std::byte> pipe_streambuf::meeting_key() const noexcept {
  if (!engine_ || !engine_->path->key) return {};
  return *engine_->path->key;
}

bool pipe_streambuf::is_open() const noexcept { return engine_ && !engine_->closed; }

/// Returns whether it is that of the process that this one was forked from, and says so then.
bool pipe_streambuf::is_parents() {
  if (!engine_->is_inherited()) return false;
  engine_->note(errc::forked_child, engine_->path->name);
  return true;
}

/// Returns whether it is open; else operations say so from now on.
bool pipe_streambuf::is_usable() {
  if (engine_ && engine_->closed) engine_->note(errc::closed, use_of_nothing);
  return is_open() && !is_parents();
}

void pipe_streambuf::throw_error() const {
  if (!engine_) throw ucx::error(errc::closed, use_of_nothing);
  throw ucx::error(engine_->error, engine_->error_text);
}

/// Ends a public function of this outcome.
void pipe_streambuf::end_with(std::error_code outcome, std::error_code& ec) const {
  if (&ec != &throws) {
    ec = outcome;
  } else if (outcome) {
    throw_error();
  }
}

void pipe_streambuf::close_output(std::error_code& ec) { end_with(end_output(), ec); }

std::error_code pipe_streambuf::end_output() {
  if (!engine_) return errc::closed;
  if (!engine_->out) return {};
  if (is_parents()) return engine_->error;
  pipe_output& out = *engine_->out;
  if (out.is_closed()) return engine_->output_result;
  out.begin();
  std::error_code ec;
  const bool whole = written() >= engine_->due && (pptr() == pbase() || flush_area());
  setp(nullptr, nullptr);
  if (whole) {
    ec = out.close();
    if (ec) engine_->keep_write();
    if (ec && !engine_->error) engine_->note(ec, engine_->path->name + ": " + ec.message());
  } else {
    // Not all that the program has written is there: that is no end to tell a reader.
    ec = engine_->write_error ? engine_->write_error : make_error_code(errc::canceled);
    engine_->note(ec, engine_->write_text);
    out.abort(ec);
  }
  engine_->output_result = ec;
  return ec;
}

void pipe_streambuf::close_input() noexcept {
  if (engine_->in && !engine_->is_inherited())
    engine_->in->close(static_cast<std::size_t>(egptr() - gptr()));
  setg(nullptr, nullptr, nullptr);
}

void pipe_streambuf::close(std::error_code& ec) { end_with(end(), ec); }

std::error_code pipe_streambuf::end() {
  if (!is_open()) return {};
  if (is_parents()) return engine_->error;
  // Else two ends that both close would wait for each other to read.
  close_input();
  const std::error_code ec = end_output();
  engine_->closed = true;
  for (endpoint& each : engine_->path->peers) {
    std::error_code gone;  // everything that matters was confirmed
    each.close(ec ? close_mode::abort : close_mode::flush, gone);
  }
  return ec;
}

void pipe_streambuf::abort() noexcept {
  if (!is_open() || engine_->is_inherited()) return;
  close_input();
  setp(nullptr, nullptr);
  if (engine_->out) engine_->out->abort(errc::canceled);
  engine_->closed = true;
  for (endpoint& each : engine_->path->peers) {
    std::error_code gone;
    each.close(close_mode::flush, gone);  // what was said last arrives
  }
}

std::error_code pipe_streambuf::error() const noexcept {
  return engine_ ? engine_->error : make_error_code(errc::closed);
}

std::string pipe_streambuf::error_message() const {
  return engine_ ? engine_->error_text : use_of_nothing;
}

std::uint64_t pipe_streambuf::received() const noexcept {
  if (!engine_ || !engine_->in) return 0;
  return engine_->in->taken() + engine_->in->area().size() -
         static_cast<std::uint64_t>(egptr() - gptr());
}

std::uint64_t pipe_streambuf::sent() const noexcept {
  return engine_ && engine_->out ? engine_->out->sent() : 0;
}

std::uint64_t pipe_streambuf::consumed() {
  if (!engine_ || !engine_->out) return 0;
  const std::uint64_t taken = engine_->out->taken();
  if (engine_->out->error()) engine_->keep_write();
  return taken;
}

ucx::transfer_method pipe_streambuf::transfer_method() const noexcept {
  const bool writes_in_place = engine_ && engine_->out && engine_->out->uses_places();
  const bool reads_in_place = engine_ && engine_->in && engine_->in->was_in_place();
  return writes_in_place || reads_in_place ? transfer_method::mapped : transfer_method::message;
}

std::size_t pipe_streambuf::readers() const noexcept {
  return engine_ && engine_->out ? engine_->out->readers() : 0;
}

std::span<const char> pipe_streambuf::available() {
  if (gptr() == egptr()) refill();
  return {gptr(), egptr()};
}

void pipe_streambuf::consume(std::size_t count) { setg(eback(), gptr() + count, egptr()); }

std::span<char> pipe_streambuf::prepare() {
  if (engine_ && engine_->out) engine_->out->begin();
  if (!ready_to_write()) throw_error();
  return {pptr(), epptr()};
}

void pipe_streambuf::commit(std::size_t count) {
  pbump(static_cast<int>(count));  // an area is a message at most
}

/// Keeps the byte before the next one, so that it can be put back.
void pipe_streambuf::leave_area() noexcept {
  if (gptr() != nullptr && gptr() > eback()) {
    engine_->last = gptr()[-1];
    engine_->has_last = true;
  }
  setg(nullptr, nullptr, nullptr);
  engine_->restored.clear();
}

/// Waits for the next message; returns false at the end.
bool pipe_streambuf::refill() {
  if (!is_usable()) throw_error();
  if (!engine_->in) {
    engine_->note(errc::permission_denied, engine_->path->name + ": reading what is only written");
    throw_error();
  }
  leave_area();
  pipe_input& in = *engine_->in;
  const pipe_input::outcome ended = in.refill();
  engine_->keep(in);
  if (ended == pipe_input::outcome::failed) throw_error();
  if (ended == pipe_input::outcome::end_of_data) return false;
  // Before it is room for one byte, so that it can be put back.
  char* const next = reinterpret_cast<char*>(in.area().data());
  char* const begin = engine_->has_last ? next - 1 : next;
  if (engine_->has_last) *begin = engine_->last;
  setg(begin, next, next + in.area().size());
  return true;
}

pipe_streambuf::int_type pipe_streambuf::underflow() {
  if (gptr() < egptr() || refill()) return traits_type::to_int_type(*gptr());
  return traits_type::eof();
}

pipe_streambuf::int_type pipe_streambuf::pbackfail(int_type c) {
  if (gptr() == eback()) return traits_type::eof();
  gbump(-1);
  if (!traits_type::eq_int_type(c, traits_type::eof())) *gptr() = traits_type::to_char_type(c);
  return traits_type::not_eof(c);
}

std::streamsize pipe_streambuf::xsgetn(char* into, std::streamsize count) {
  std::streamsize done = 0;
  std::error_code failed;
  if (count > 0) detail::is_copied_by_driver(into, static_cast<std::size_t>(count), failed);
  if (failed && is_open()) {
    engine_->note(failed, engine_->path->name + ": reading into memory of two places");
    throw_error();
  }
  while (done < count) {
    try {
      if (gptr() == egptr() && !refill()) break;
    } catch (...) {
      // The call has read nothing, then: what came before is there for the next one.
      restore({into, static_cast<std::size_t>(done)});
      throw;
    }
    const std::streamsize step = std::min<std::streamsize>(egptr() - gptr(), count - done);
    copy_memory(into + done, gptr(), static_cast<std::size_t>(step), engine_->copying, failed);
    if (failed) {
      restore({into, static_cast<std::size_t>(done)});
      engine_->note(failed, engine_->path->name + ": reading into a device: " + failed.message());
      throw_error();
    }
    setg(eback(), gptr() + step, egptr());
    done += step;
  }
  return done;
}

void pipe_streambuf::restore(std::span<const char> read) {
  if (!engine_ || read.empty()) return;
  std::vector<char> all;
  try {
    all.resize(read.size() + static_cast<std::size_t>(egptr() - gptr()));
  } catch (...) {  // nothing may be read behind a gap
    engine_->in->give_up(make_error_code(errc::no_memory));
    setg(nullptr, nullptr, nullptr);
    return;
  }
  std::copy(gptr(), egptr(), all.begin() + std::ssize(read));  // what is behind it
  std::error_code lost;  // with its device; why there was anything to restore counts more
  copy_memory(all.data(), read.data(), read.size(), engine_->copying, lost);
  if (lost) engine_->in->give_up(lost);
  engine_->restored.swap(all);
  char* const begin = engine_->restored.data();
  setg(begin, lost ? begin + engine_->restored.size() : begin, begin + engine_->restored.size());
}

std::streamsize pipe_streambuf::showmanyc() {
  if (!is_open() || !engine_->in) return -1;
  try {
    engine_->path->driven->progress();
    leave_area();
    if (!engine_->in->is_ready()) {
      if (engine_->has_last) restore({&engine_->last, 1});
      setg(eback(), egptr(), egptr());
      return 0;
    }
    return refill() ? egptr() - gptr() : -1;
  } catch (...) {
    return 0;  // a read says why
  }
}

/// Sends what was put. A write that fails for now is kept, and can be tried again.
bool pipe_streambuf::flush_area() {
  if (!is_usable() || !engine_->out) return false;
  const std::uint64_t before = engine_->out->sent();
  bool sent = false;
  try {
    sent = engine_->out->flush(static_cast<std::size_t>(pptr() - pbase()));
  } catch (...) {  // without memory; what was sent is not sent again
    if (engine_->out->sent() != before) show_put_area();
    throw;
  }
  if (sent) {
    show_put_area();
  } else if (engine_->out->is_broken()) {
    setp(nullptr, nullptr);
  }
  return engine_->keep_write() && sent;
}

void pipe_streambuf::show_put_area() {
  if (!engine_->out) return;
  const std::span<std::byte> area = engine_->out->area();
  char* const begin = reinterpret_cast<char*>(area.data());
  setp(begin, begin + area.size());
}

/// Returns whether there is room for a byte, having made some.
bool pipe_streambuf::ready_to_write() {
  if (pptr() < epptr()) return true;
  if (!is_usable()) return false;
  if (!engine_->out) {
    engine_->note(errc::permission_denied, engine_->path->name + ": writing what is only read");
    return false;
  }
  if (!flush_area()) return false;
  if (pptr() < epptr()) return true;
  const bool made = engine_->out->ensure_area();
  if (made) show_put_area();
  return engine_->keep_write() && made;
}

/// Returns how many bytes were put, flushed or not.
std::uint64_t pipe_streambuf::written() const noexcept {
  return sent() + static_cast<std::uint64_t>(pptr() - pbase());
}

pipe_streambuf::int_type pipe_streambuf::overflow(int_type c) {
  const bool puts = !traits_type::eq_int_type(c, traits_type::eof());
  if (engine_ && engine_->out) engine_->out->begin();
  if (!ready_to_write()) {
    if (puts && engine_) engine_->miss(written(), 1);
    return traits_type::eof();
  }
  if (puts) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

std::streamsize pipe_streambuf::xsputn(const char* from, std::streamsize count) {
  if (count <= 0) return 0;
  if (!engine_ || !engine_->out) return write(from, count);
  engine_->out->begin();
  const std::uint64_t before = written();
  std::streamsize done = 0;
  try {
    done = write(from, count);
  } catch (...) {  // without memory: what of it was put, only `written` knows
    const void* const area = engine_->out->area().data();
    if (area != pbase()) show_put_area();
    engine_->miss(before, static_cast<std::uint64_t>(count));
    throw;
  }
  if (done < count) engine_->miss(written(), static_cast<std::uint64_t>(count - done));
  return done;
}

std::streamsize pipe_streambuf::write(const char* from, std::streamsize count) {
  std::streamsize done = 0;
  if (!ready_to_write()) return done;
  std::error_code misplaced;
  detail::is_copied_by_driver(from, static_cast<std::size_t>(count), misplaced);
  if (misplaced) {
    engine_->note_write(misplaced, engine_->path->name +
                                       ": writing out of memory of two places behind " +
                                       detail::pipe_bytes_text(written()));
    return done;
  }
  // Bytes that fit one message go as one, so that bytes of other writers do not come between.
  if (count > epptr() - pptr() && (!flush_area() || !ready_to_write())) return done;
  const auto whole =
      static_cast<std::streamsize>(engine_->out->sent_of(static_cast<std::size_t>(count)));
  if (whole > 0) {
    if (!flush_area()) return done;
    done = static_cast<std::streamsize>(
        engine_->out->send(std::as_bytes(std::span(from, static_cast<std::size_t>(whole)))));
    show_put_area();
    if (!engine_->keep_write() || done < whole) return done;
  }
  if (done < count && ready_to_write()) {
    const std::streamsize rest = count - done;
    std::error_code failed;
    copy_memory(pptr(), from + done, static_cast<std::size_t>(rest), engine_->copying, failed);
    if (failed) {
      engine_->note_write(failed, engine_->path->name + ": writing out of a device behind " +
                                      detail::pipe_bytes_text(written()) + ": " + failed.message());
      return done;
    }
    commit(static_cast<std::size_t>(rest));
    done = count;
  }
  return done;
}

int pipe_streambuf::sync() {
  if (!is_usable()) return -1;
  if (!engine_->out) return 0;
  engine_->out->begin();
  if (pptr() != pbase()) return flush_area() ? 0 : -1;
  // The last bytes that were put may be lost by now.
  if (engine_->out->is_closed()) return engine_->output_result ? -1 : 0;
  return !engine_->out->is_broken() || engine_->keep_write() ? 0 : -1;
}

pipe_streambuf::pos_type pipe_streambuf::seekoff(off_type offset, std::ios_base::seekdir from,
                                                 std::ios_base::openmode which) {
  const bool tells = offset == 0 && from == std::ios_base::cur && is_open();
  if (tells && reads(which) && engine_->in) return static_cast<off_type>(received());
  if (!tells || !writes(which) || !engine_->out) return pos_type(off_type(-1));
  return static_cast<off_type>(written());
}

}  // namespace ucx
