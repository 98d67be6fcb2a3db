// The functions of std::streambuf that filebuf overrides. filebuf.cpp opens, moves and closes.
#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <typeinfo>

#include "files/filebuf_turn.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx {
namespace {

using std::ios_base;
using exposed = detail::exposed_streambuf;
using detail::minus_one_fails;
using detail::no_result_fails;

/// Bytes between a local file and a device lie in the host's memory, so many at a time.
constexpr std::streamsize longest_staged = std::streamsize{1} << 20U;

void copy_get_area(const std::streambuf& from, std::streambuf& to) noexcept {
  (to.*&exposed::setg)((from.*&exposed::eback)(), (from.*&exposed::gptr)(),
                       (from.*&exposed::egptr)());
}

void copy_put_area(const std::streambuf& from, std::streambuf& to) noexcept {
  char* const put_begin = (from.*&exposed::pbase)();
  (to.*&exposed::setp)(put_begin, (from.*&exposed::epptr)());
  // A put area that the caller gave may be longer than an int can say.
  for (std::ptrdiff_t left = (from.*&exposed::pptr)() - put_begin; left > 0;) {
    const auto step =
        static_cast<int>(std::min<std::ptrdiff_t>(left, std::numeric_limits<int>::max()));
    (to.*&exposed::pbump)(step);
    left -= step;
  }
}

}  // namespace

/// The front's turn within one of the inner buffer's.
class filebuf::front_turn {
 public:
  explicit front_turn(filebuf& front) noexcept : front_(front) { front.take_areas(); }
  ~front_turn() { front_.lend_areas(); }
  front_turn(const front_turn&) = delete;
  front_turn& operator=(const front_turn&) = delete;

 private:
  filebuf& front_;
};

filebuf::int_type filebuf::local_file::underflow() {
  const front_turn its(front_);
  return front_.underflow();
}

filebuf::int_type filebuf::local_file::uflow() {
  const front_turn its(front_);
  return front_.uflow();
}

filebuf::int_type filebuf::local_file::overflow(int_type c) {
  const front_turn its(front_);
  return front_.overflow(c);
}

int filebuf::local_file::sync() {
  const front_turn its(front_);
  return front_.sync();
}

filebuf::pos_type filebuf::local_file::seekoff(off_type offset, ios_base::seekdir from,
                                               ios_base::openmode which) {
  const front_turn its(front_);
  return front_.seekoff(offset, from, which);
}

/// Returns whether a derived class may have overridden functions of this one.
bool filebuf::is_derived() const noexcept { return typeid(*this) != typeid(filebuf); }

void filebuf::lend_areas() noexcept {
  if (!by_url_) {
    copy_get_area(*this, local_);
    copy_put_area(*this, local_);
    return;
  }
  // Areas that a derived class has set in their place mean nothing to the other.
  if (eback() == (remote_.*&exposed::eback)() && egptr() == (remote_.*&exposed::egptr)()) {
    copy_get_area(*this, remote_);
  }
  if (epptr() == (remote_.*&exposed::epptr)()) copy_put_area(*this, remote_);
}

void filebuf::take_areas() noexcept {
  const std::streambuf& from = inner();
  copy_get_area(from, *this);
  copy_put_area(from, *this);
}

/// Has the put area go where overflow() has it go before anything else is done. A derived class
/// expects that of std::filebuf, which sees to it by itself.
bool filebuf::hand_over() {
  if (!by_url_ || pptr() == pbase() || !is_derived()) return true;
  return !traits_type::eq_int_type(overflow(traits_type::eof()), traits_type::eof());
}

/// Writes what is in a put area that a derived class has set, as std::filebuf does.
bool filebuf::write_foreign_area() {
  if (!by_url_ || epptr() == (remote_.*&exposed::epptr)()) return true;
  const char* const from = pbase();
  const std::streamsize count = pptr() - pbase();
  const auto is_short = [count](std::streamsize written) { return written < count; };
  return !is_short(pass(is_short, &exposed::xsputn, from, count));
}

filebuf::int_type filebuf::underflow() {
  if (!hand_over()) return traits_type::eof();
  return pass_to(no_result_fails, &exposed::underflow, &local_file::own_underflow);
}

filebuf::int_type filebuf::pbackfail(int_type c) {
  return pass(no_result_fails, &exposed::pbackfail, c);
}

std::streamsize filebuf::xsgetn(char* into, std::streamsize count) {
  // Buffered bytes are copied here, but not out of an area of one character. That may be
  // std::filebuf's for a byte that was put back, and std::filebuf has to notice that it is taken.
  const bool has_all = count > 0 && count <= egptr() - gptr() && egptr() - eback() > 1;
  const bool to_device = count > 0 && is_copied_by_driver(into, static_cast<std::size_t>(count));
  if (to_device && !by_url_ && count > 0) return read_staged(into, count);
  if (has_all && !to_device) {
    std::memcpy(into, gptr(), static_cast<std::size_t>(count));
    setg(eback(), gptr() + count, egptr());
    return count;
  }
  if (by_url_ && !to_device && is_derived()) return std::streambuf::xsgetn(into, count);
  return pass(no_result_fails, &exposed::xsgetn, into, count);
}

std::streamsize filebuf::showmanyc() { return pass(no_result_fails, &exposed::showmanyc); }

filebuf::int_type filebuf::overflow(int_type c) {
  if (!write_foreign_area()) return traits_type::eof();
  return pass_to(minus_one_fails, &exposed::overflow, &local_file::own_overflow, c);
}

std::streamsize filebuf::xsputn(const char* from, std::streamsize count) {
  const std::streamsize room = epptr() - pptr();
  // std::filebuf writes what is long past its buffer, and fills that up only by itself.
  constexpr std::streamsize longest = 1024;
  const std::streamsize limit = by_url_ ? room + 1 : std::min(room, longest);
  const bool from_device = count > 0 && is_copied_by_driver(from, static_cast<std::size_t>(count));
  if (from_device && !by_url_ && count > 0) return write_staged(from, count);
  if (count > 0 && count < limit && !from_device) {
    std::memcpy(pptr(), from, static_cast<std::size_t>(count));
    if (count <= std::numeric_limits<int>::max()) {
      pbump(static_cast<int>(count));  // all from pbase() on is unwritten
    } else {
      setp(pptr() + count, epptr());  // by URL, where the beginning does not matter
    }
    return count;
  }
  if (by_url_ && !from_device && is_derived()) return std::streambuf::xsputn(from, count);
  const auto is_short = [count](std::streamsize written) { return written < count; };
  return pass(is_short, &exposed::xsputn, from, count);
}

/// Through memory of the host's: std::filebuf can not reach a device's.
std::streamsize filebuf::read_staged(char* into, std::streamsize count) {
  std::streamsize done = 0;
  std::error_code misplaced;
  detail::is_copied_by_driver(into, static_cast<std::size_t>(count), misplaced);
  if (misplaced) {
    fail(misplaced, "reading into memory of two places");
    throw ucx::error(misplaced, name_ + ": reading into memory of two places");
  }
  const std::streamsize piece = std::min(count, longest_staged);
  const auto stage = std::make_unique<char[]>(static_cast<std::size_t>(piece));
  while (done < count) {
    const std::streamsize step = std::min(piece, count - done);
    const std::streamsize got = pass(no_result_fails, &exposed::xsgetn, stage.get(), step);
    std::error_code failed;
    copy_memory(into + done, stage.get(), static_cast<std::size_t>(got), {}, failed);
    if (failed) {
      // Bytes that were not copied are read again by the next call, where the file can be sought.
      pass(minus_one_fails, &exposed::seekoff, off_type(-got), ios_base::cur, ios_base::in);
      fail(failed, "reading into a device: " + failed.message());
      throw ucx::error(failed, name_ + ": reading into a device");
    }
    done += got;
    if (got < step) break;
  }
  return done;
}

std::streamsize filebuf::write_staged(const char* from, std::streamsize count) {
  std::streamsize done = 0;
  std::error_code misplaced;
  detail::is_copied_by_driver(from, static_cast<std::size_t>(count), misplaced);
  if (misplaced) {
    fail(misplaced, "writing out of memory of two places");
    return done;
  }
  const std::streamsize piece = std::min(count, longest_staged);
  const auto stage = std::make_unique<char[]>(static_cast<std::size_t>(piece));
  while (done < count) {
    const std::streamsize step = std::min(piece, count - done);
    std::error_code failed;
    copy_memory(stage.get(), from + done, static_cast<std::size_t>(step), {}, failed);
    if (failed) {
      fail(failed, "writing out of a device: " + failed.message());
      break;
    }
    const auto is_short = [step](std::streamsize written) { return written < step; };
    const std::streamsize wrote = pass(is_short, &exposed::xsputn, stage.get(), step);
    done += wrote;
    if (wrote < step) break;
  }
  return done;
}

int filebuf::sync() {
  if (!hand_over()) return -1;
  return pass_to(minus_one_fails, &exposed::sync, &local_file::own_sync);
}

filebuf::pos_type filebuf::seekoff(off_type offset, ios_base::seekdir from,
                                   ios_base::openmode which) {
  const bool only_asks = offset == 0 && from == ios_base::cur;
  if (!only_asks && !hand_over()) return pos_type(off_type(-1));
  return pass_to(minus_one_fails, &exposed::seekoff, &local_file::own_seekoff, offset, from, which);
}

filebuf::pos_type filebuf::seekpos(pos_type position, ios_base::openmode which) {
  if (!hand_over()) return pos_type(off_type(-1));
  return pass(minus_one_fails, &exposed::seekpos, position, which);
}

}  // namespace ucx
