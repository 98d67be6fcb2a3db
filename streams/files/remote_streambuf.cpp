#include "ucx/stream.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "engine/region_source.hpp"
#include "engine/stream_engine.hpp"
#include "files/kept_for_parent.hpp"
#include "ucx/access.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx {
namespace {

using engine = detail::stream_engine;
using outcome = engine::outcome;

std::error_code refusal(const remote_region& region, std::ios_base::openmode mode) {
  const bool in = (mode & std::ios_base::in) != 0;
  const bool out = (mode & std::ios_base::out) != 0;
  if (!in && !out) return errc::invalid_argument;
  if ((mode & (std::ios_base::trunc | std::ios_base::app)) != 0) return errc::not_supported;
  if (const std::error_code unusable = region.status()) return unusable;
  if (in && !includes(region.granted(), access::read)) return errc::permission_denied;
  if (out && !includes(region.granted(), access::write)) return errc::permission_denied;
  return {};
}

std::unique_ptr<engine> open(const remote_region& region, std::ios_base::openmode mode,
                             const stream_options& options, std::error_code& ec) {
  ec = refusal(region, mode);
  if (!ec && !engine::why_not(options).empty()) ec = errc::invalid_argument;
  if (ec) return nullptr;
  return std::make_unique<engine>(
      std::make_unique<detail::region_source>(
          region, io_options{options.timeout, options.verify, options.cuda_stream}),
      mode, options);
}

constexpr const char* use_of_nothing = "using a stream over nothing";

[[noreturn]] void throw_empty() { throw error(errc::closed, use_of_nothing); }

/// Returns whether there are no devices, in one look.
inline bool has_no_devices() noexcept {
  return detail::has_no_cuda.load(std::memory_order_relaxed);
}

/// Returns whether the processor may copy the caller's bytes, where there may be devices.
[[gnu::noinline]] bool is_the_hosts(const char* bytes, std::streamsize count) noexcept {
  return !is_copied_by_driver(bytes, static_cast<std::size_t>(count));
}

}  // namespace

remote_streambuf::remote_streambuf() = default;

remote_streambuf::remote_streambuf(const remote_region& region, std::ios_base::openmode mode,
                                   const stream_options& options, std::error_code& ec) {
  std::error_code outcome;
  engine_ = open(region, mode, options, outcome);
  if (&ec != &throws) ec = outcome;
  if (&ec != &throws || !outcome) return;
  std::string what = "opening a stream over " + region.description();
  if (const std::string why = engine::why_not(options); !why.empty()) what += " with " + why;
  throw ucx::error(outcome, what);
}

remote_streambuf::remote_streambuf(std::unique_ptr<engine> opened) noexcept
    : engine_(std::move(opened)) {}

remote_streambuf::remote_streambuf(remote_streambuf&& other) noexcept
    : std::streambuf(other), engine_(std::move(other.engine_)) {
  other.setg(nullptr, nullptr, nullptr);
  other.setp(nullptr, nullptr);
}

remote_streambuf& remote_streambuf::operator=(remote_streambuf&& other) noexcept {
  remote_streambuf taken(std::move(other));
  swap(taken);
  return *this;
}

remote_streambuf::~remote_streambuf() {
  if (!engine_ || detail::keep_for_parent(engine_)) return;
  engine_->enter(gptr(), pptr());
  engine_->close(engine::ending::destroyed);
}

void remote_streambuf::swap(remote_streambuf& other) noexcept {
  std::streambuf::swap(other);
  engine_.swap(other.engine_);
}

bool remote_streambuf::is_open() const noexcept { return engine_ && engine_->is_open(); }

void remote_streambuf::close(std::error_code& ec) {
  std::error_code outcome;
  if (engine_) {
    engine_->enter(gptr(), pptr());
    outcome = engine_->close();
    setg(nullptr, nullptr, nullptr);
    setp(nullptr, nullptr);
  }
  if (&ec != &throws) {
    ec = outcome;
  } else if (outcome) {
    engine_->throw_error();
  }
}

std::error_code remote_streambuf::error() const noexcept {
  return engine_ ? engine_->error() : make_error_code(errc::closed);
}

std::string remote_streambuf::error_message() const {
  if (!engine_) return use_of_nothing;
  return engine_->error() ? engine_->error_text() : std::string();
}

stream_statistics remote_streambuf::statistics() const noexcept {
  return engine_ ? engine_->statistics() : stream_statistics();
}

remote_streambuf::int_type remote_streambuf::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  if (!engine_) throw_empty();
  engine_->enter(gptr(), pptr());
  const outcome ended = engine_->refill();
  const engine::areas now = engine_->current_areas();
  setg(now.get_begin, now.get_next, now.get_end);
  setp(now.put_next, now.put_end);
  if (ended == outcome::failed) engine_->throw_error();
  return ended == outcome::done ? traits_type::to_int_type(*gptr()) : traits_type::eof();
}

remote_streambuf::int_type remote_streambuf::pbackfail(int_type c) {
  if (!engine_) throw_empty();
  engine_->enter(gptr(), pptr());
  const outcome ended = engine_->step_back();
  const engine::areas now = engine_->current_areas();
  setg(now.get_begin, now.get_next, now.get_end);
  setp(now.put_next, now.put_end);
  if (ended == outcome::failed) engine_->throw_error();
  if (ended == outcome::end_of_data) return traits_type::eof();
  const char wanted = traits_type::to_char_type(c);
  if (!traits_type::eq_int_type(c, traits_type::eof()) && !traits_type::eq(wanted, *gptr())) {
    const bool altered = engine_->alter_get_area() == outcome::done;
    const engine::areas own = engine_->current_areas();
    setg(own.get_begin, own.get_next, own.get_end);
    if (!altered) engine_->throw_error();
    *gptr() = wanted;
  }
  return traits_type::to_int_type(*gptr());
}

std::streamsize remote_streambuf::xsgetn(char* into, std::streamsize count) {
  // One comparison for both: that there is something to read, and that the get area has it.
  const bool has_all =
      static_cast<std::size_t>(count) - 1 < static_cast<std::size_t>(egptr() - gptr());
  if (has_all && (has_no_devices() || is_the_hosts(into, count))) [[likely]] {
    std::memcpy(into, gptr(), static_cast<std::size_t>(count));
    setg(eback(), gptr() + count, egptr());
    return count;
  }
  if (count <= 0) return 0;
  if (!engine_) throw_empty();
  engine_->enter(gptr(), pptr());
  std::size_t moved = 0;
  const outcome ended = engine_->read(
      std::as_writable_bytes(std::span(into, static_cast<std::size_t>(count))), moved);
  const engine::areas now = engine_->current_areas();
  setg(now.get_begin, now.get_next, now.get_end);
  setp(now.put_next, now.put_end);
  if (ended == outcome::failed) engine_->throw_error();
  return static_cast<std::streamsize>(moved);
}

std::streamsize remote_streambuf::showmanyc() {
  if (!engine_) return -1;
  engine_->enter(gptr(), pptr());
  return engine_->remaining();
}

remote_streambuf::int_type remote_streambuf::overflow(int_type c) {
  if (!engine_) return traits_type::eof();
  engine_->enter(gptr(), pptr());
  const bool nothing_to_add = traits_type::eq_int_type(c, traits_type::eof());
  const outcome ended = nothing_to_add ? engine_->write_out() : engine_->make_room();
  const engine::areas now = engine_->current_areas();
  setg(now.get_begin, now.get_next, now.get_end);
  setp(now.put_next, now.put_end);
  if (ended != outcome::done) return traits_type::eof();
  if (!nothing_to_add) {
    *pptr() = traits_type::to_char_type(c);
    pbump(1);
  }
  return traits_type::not_eof(c);
}

std::streamsize remote_streambuf::xsputn(const char* from, std::streamsize count) {
  if (count <= 0) return 0;
  if (count <= epptr() - pptr() && (has_no_devices() || is_the_hosts(from, count))) {
    std::memcpy(pptr(), from, static_cast<std::size_t>(count));
    setp(pptr() + count, epptr());
    return count;
  }
  if (!engine_) return 0;
  engine_->enter(gptr(), pptr());
  const std::size_t moved =
      engine_->write(std::as_bytes(std::span(from, static_cast<std::size_t>(count))));
  const engine::areas now = engine_->current_areas();
  setg(now.get_begin, now.get_next, now.get_end);
  setp(now.put_next, now.put_end);
  return static_cast<std::streamsize>(moved);
}

int remote_streambuf::sync() {
  if (!engine_) return -1;
  engine_->enter(gptr(), pptr());
  const outcome ended = engine_->sync();
  const engine::areas now = engine_->current_areas();
  setg(now.get_begin, now.get_next, now.get_end);
  setp(now.put_next, now.put_end);
  return ended == outcome::done ? 0 : -1;
}

remote_streambuf::pos_type remote_streambuf::seekoff(off_type offset, std::ios_base::seekdir from,
                                                     std::ios_base::openmode) {
  const pos_type nowhere{off_type(-1)};
  if (!is_open()) return nowhere;
  engine_->enter(gptr(), pptr());
  // To tell the position moves nothing: the areas stay.
  const bool only_asks = offset == 0 && from == std::ios_base::cur;
  if (!only_asks) {
    const outcome ended = engine_->seek(offset, from);
    const engine::areas now = engine_->current_areas();
    setg(now.get_begin, now.get_next, now.get_end);
    setp(now.put_next, now.put_end);
    if (ended != outcome::done) return nowhere;
  }
  return pos_type(static_cast<off_type>(engine_->position()));
}

remote_streambuf::pos_type remote_streambuf::seekpos(pos_type position,
                                                     std::ios_base::openmode which) {
  return seekoff(off_type(position), std::ios_base::beg, which);
}

}  // namespace ucx
