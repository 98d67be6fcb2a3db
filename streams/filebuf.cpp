#include "ucx/filebuf.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <utility>

#include "published_source.hpp"
#include "stream_engine.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_copy.hpp"
#include "ucx/url.hpp"

namespace ucx {
namespace {

using std::ios_base;

/// Names the protected members of std::streambuf, so that pointers to them can be used on any.
struct exposed : std::streambuf {
  using std::streambuf::eback;
  using std::streambuf::egptr;
  using std::streambuf::epptr;
  using std::streambuf::gptr;
  using std::streambuf::overflow;
  using std::streambuf::pbackfail;
  using std::streambuf::pbase;
  using std::streambuf::pbump;
  using std::streambuf::pptr;
  using std::streambuf::seekoff;
  using std::streambuf::seekpos;
  using std::streambuf::setg;
  using std::streambuf::setp;
  using std::streambuf::showmanyc;
  using std::streambuf::sync;
  using std::streambuf::underflow;
  using std::streambuf::xsgetn;
  using std::streambuf::xsputn;
};

void copy_areas(const std::streambuf& from, std::streambuf& to) noexcept {
  (to.*&exposed::setg)((from.*&exposed::eback)(), (from.*&exposed::gptr)(),
                       (from.*&exposed::egptr)());
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

using detail::directions;
using detail::noreplace;

/// Throws unless `mode` means something. Bits that this standard library does not know, as an older
/// one's std::ios::noreplace, are not guessed at.
void require_meaning(ios_base::openmode mode) {
  const bool truncates = (mode & ios_base::trunc) != 0;
  const bool appends = (mode & ios_base::app) != 0;
  const bool makes = (mode & noreplace) != 0;
  if (((mode & directions) == 0 && !appends) ||
      (truncates && (appends || (mode & ios_base::out) == 0)) ||
      (makes && (appends || (mode & ios_base::out) == 0))) {
    throw error(errc::invalid_argument, "this combination of openmodes has no meaning");
  }
  constexpr ios_base::openmode known =
      directions | ios_base::ate | ios_base::binary | ios_base::trunc | ios_base::app | noreplace;
  if ((mode & ~known) != 0) {
    throw error(errc::not_supported, "this openmode can not be had of what is published");
  }
}

bool converts(const std::locale& locale) {
  using conversion = std::codecvt<char, char, std::mbstate_t>;
  return std::has_facet<conversion>(locale) && !std::use_facet<conversion>(locale).always_noconv();
}

constexpr const char* conversion_refused =
    "what is published is read and written as it is, and the locale's codecvt converts";

std::string describe(const client& from, std::string_view name) {
  std::error_code unnamed;
  const url whole = from.server().with_name(name, unnamed);
  return unnamed ? std::string(name) : to_string(whole);
}

/// What goes between a local file and a device lies in the host's memory, so much of it at a time.
constexpr std::streamsize longest_staged = std::streamsize{1} << 20U;

constexpr auto no_result_fails = [](auto&&) { return false; };
constexpr auto minus_one_fails = [](auto&& result) { return std::streamoff(result) == -1; };

}  // namespace

/// The inner buffer's turn: while it lasts, that one has the areas, and errno is about it alone.
class filebuf::turn {
 public:
  explicit turn(filebuf& front) noexcept : front_(front), errno_before_(std::exchange(errno, 0)) {
    front.lend_areas();
  }
  ~turn() {
    front_.take_areas();
    if (errno == 0) errno = errno_before_;
  }
  turn(const turn&) = delete;
  turn& operator=(const turn&) = delete;

 private:
  filebuf& front_;
  const int errno_before_;
};

template <class Failed, class Member, class... Arguments>
auto filebuf::pass(Failed failed, Member member, Arguments... arguments) {
  const turn inner_turn(*this);
  if (is_open()) error_.clear();
  try {
    const auto result = (inner().*member)(arguments...);
    if (!is_open()) {
      if (!error_) fail(errc::closed);  // else it tells why nothing is open
    } else if (!by_url_ && failed(result)) {
      fail_by_errno();
    }
    return result;
  } catch (const std::system_error& failure) {
    if (!by_url_) fail(failure.code(), failure.what());
    throw;
  }
}

filebuf::filebuf() = default;

filebuf::filebuf(filebuf&& other)
    : std::streambuf(other),
      local_(other.local_to_move()),
      remote_(std::move(other.remote_)),
      by_url_(std::exchange(other.by_url_, false)),
      wanted_buffer_size_(std::exchange(other.wanted_buffer_size_, 0)),
      name_(std::exchange(other.name_, {})),
      error_(std::exchange(other.error_, {})),
      error_text_(std::exchange(other.error_text_, {})) {
  take_areas();
  other.take_areas();
}

filebuf& filebuf::operator=(filebuf&& other) {
  close();
  std::streambuf::operator=(other);
  local_ = other.local_to_move();
  remote_ = std::move(other.remote_);
  by_url_ = std::exchange(other.by_url_, false);
  wanted_buffer_size_ = std::exchange(other.wanted_buffer_size_, 0);
  name_ = std::exchange(other.name_, {});
  error_ = std::exchange(other.error_, {});
  error_text_ = std::exchange(other.error_text_, {});
  take_areas();
  other.take_areas();
  return *this;
}

filebuf::~filebuf() {
  try {
    if (by_url_) {
      lend_areas();  // what is published ends with its own buffer, which is destroyed next
    } else {
      close();
    }
  } catch (...) {
    // A local file's conversion failed: as std::filebuf, which has nobody to tell either.
  }
}

void filebuf::swap(filebuf& other) {
  lend_areas();
  other.lend_areas();
  std::streambuf::swap(other);
  local_.swap(other.local_);
  remote_.swap(other.remote_);
  std::swap(by_url_, other.by_url_);
  std::swap(wanted_buffer_size_, other.wanted_buffer_size_);
  name_.swap(other.name_);
  std::swap(error_, other.error_);
  error_text_.swap(other.error_text_);
  take_areas();
  other.take_areas();
}

std::streambuf& filebuf::inner() noexcept {
  if (by_url_) return remote_;
  return local_;
}

void filebuf::lend_areas() noexcept { copy_areas(*this, inner()); }
void filebuf::take_areas() noexcept { copy_areas(inner(), *this); }

std::filebuf&& filebuf::local_to_move() noexcept {
  lend_areas();
  return std::move(local_);
}

void filebuf::fail(std::error_code why, std::string_view text) {
  error_ = why;
  error_text_ = text;
}

void filebuf::fail_by_errno() {
  fail(errno != 0 ? std::error_code(errno, std::generic_category())
                  : make_error_code(errc::invalid_argument));
}

filebuf* filebuf::open(const char* name, ios_base::openmode mode, const stream_options& options) {
  if (name == nullptr) return open_path("", mode);  // fails, as it does with std::filebuf on Linux
  if (!url::is_meant_by(name)) return open_path(name, mode);
  return open_published(name, mode, options, [name, mode, &options] {
    const url address(name);
    if (address.name().empty()) {
      throw ucx::error(errc::bad_url, "a server is not a stream: its URL lacks a name");
    }
    const auto connect = [address] { return client::shared(address); };
    try {
      return detail::open_published(connect, address.name(), mode, options);
    } catch (const ucx::error& failed) {
      if (failed.code() != std::errc::connection_reset) throw;
    }
    // The shared connection was lost before anybody looked at it: the server may be there again.
    return detail::open_published(connect, address.name(), mode, options);
  });
}

filebuf* filebuf::open(client& from, std::string_view name, ios_base::openmode mode,
                       const stream_options& options) {
  return open_published(describe(from, name), mode, options, [&] {
    const auto own = std::make_shared<client>(from.share());
    return detail::open_published([own] { return own->reconnected(); }, name, mode, options);
  });
}

/// Returns whether nothing is open yet; what is going to be opened is called `name` from now on.
bool filebuf::begin_open(std::string_view name) {
  if (is_open()) {
    fail(errc::invalid_argument, "something is open already");
    return false;
  }
  name_ = name;
  error_.clear();
  return true;
}

filebuf* filebuf::open_path(const char* name, ios_base::openmode mode) {
  if (!begin_open(name)) return nullptr;
  const turn inner_turn(*this);
  if (local_.open(name, mode) != nullptr) return this;
  fail_by_errno();
  return nullptr;
}

template <class Connect>
filebuf* filebuf::open_published(std::string_view name, ios_base::openmode mode,
                                 const stream_options& options, Connect&& connect) {
  if (!begin_open(name)) return nullptr;
  try {
    require_meaning(mode);
    if ((mode & ios_base::app) != 0) mode |= ios_base::out;
    if (converts(getloc())) throw ucx::error(errc::not_supported, conversion_refused);
    stream_options chosen = options;
    if (wanted_buffer_size_ != 0) chosen.buffer_size = wanted_buffer_size_;
    using engine = detail::stream_engine;
    if (const std::string why = engine::why_not(chosen); !why.empty()) {
      throw ucx::error(errc::invalid_argument, "opening a stream with " + why);
    }
    remote_ = remote_streambuf(
        std::make_unique<engine>(connect(), mode, chosen, engine::seek_limit::none));
  } catch (const std::system_error& failure) {
    fail(failure.code(), failure.what());
    return nullptr;
  } catch (const std::bad_alloc&) {
    fail(errc::no_memory);
    return nullptr;
  }
  by_url_ = true;
  take_areas();
  return this;
}

filebuf* filebuf::close() {
  if (!is_open()) return nullptr;
  const turn inner_turn(*this);
  error_.clear();
  return by_url_ ? close_published() : close_path();
}

filebuf* filebuf::close_path() {
  if (local_.close() != nullptr) return this;
  fail_by_errno();
  return nullptr;
}

filebuf* filebuf::close_published() {
  std::error_code failed;
  remote_.close(failed);
  by_url_ = false;
  if (failed) fail(failed, remote_.engine_->error_text());
  remote_ = remote_streambuf();
  return failed ? nullptr : this;
}

std::error_code filebuf::error() const noexcept {
  return error_ || !by_url_ ? error_ : remote_.error();
}

std::string filebuf::error_message() const {
  const std::error_code why = error();
  if (!why) return {};
  std::string text = error_ ? error_text_ : remote_.engine_->error_text();
  if (text.empty()) text = why.message();
  // "ucx://host:port: ..." of a text is the beginning of the name.
  const std::size_t server = text.find(": ", std::string_view("ucx://").size());
  if (by_url_ && server != std::string::npos && name_.starts_with(text.substr(0, server) + '/')) {
    text.erase(0, server + 2);
  }
  return text.find(name_) == std::string::npos ? name_ + ": " + text : text;
}

filebuf::int_type filebuf::underflow() { return pass(no_result_fails, &exposed::underflow); }

filebuf::int_type filebuf::pbackfail(int_type c) {
  return pass(no_result_fails, &exposed::pbackfail, c);
}

std::streamsize filebuf::xsgetn(char* into, std::streamsize count) {
  // What is buffered is copied here, but from an area of one character: it may be std::filebuf's
  // for what was put back, which notices in its turn that it is taken.
  const bool has_all = count > 0 && count <= egptr() - gptr() && egptr() - eback() > 1;
  const bool to_device = count > 0 && is_copied_by_driver(into, static_cast<std::size_t>(count));
  if (to_device && !by_url_ && count > 0) return read_staged(into, count);
  if (has_all && !to_device) {
    std::memcpy(into, gptr(), static_cast<std::size_t>(count));
    setg(eback(), gptr() + count, egptr());
    return count;
  }
  return pass(no_result_fails, &exposed::xsgetn, into, count);
}

std::streamsize filebuf::showmanyc() { return pass(no_result_fails, &exposed::showmanyc); }

filebuf::int_type filebuf::overflow(int_type c) {
  return pass(minus_one_fails, &exposed::overflow, c);
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
    if (by_url_) {
      setp(pptr() + count, epptr());
    } else {
      pbump(static_cast<int>(count));  // all from pbase() on is unwritten
    }
    return count;
  }
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
    copy_memory(into + done, stage.get(), static_cast<std::size_t>(got), failed);
    if (failed) {
      // What was not copied is read again by the next call, in what can be sought.
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
    copy_memory(stage.get(), from + done, static_cast<std::size_t>(step), failed);
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

int filebuf::sync() { return pass(minus_one_fails, &exposed::sync); }

filebuf::pos_type filebuf::seekoff(off_type offset, ios_base::seekdir from,
                                   ios_base::openmode which) {
  return pass(minus_one_fails, &exposed::seekoff, offset, from, which);
}

filebuf::pos_type filebuf::seekpos(pos_type position, ios_base::openmode which) {
  return pass(minus_one_fails, &exposed::seekpos, position, which);
}

std::streambuf* filebuf::setbuf(char* memory, std::streamsize size) {
  if (by_url_) return this;
  if (!is_open()) wanted_buffer_size_ = size > 1 ? static_cast<std::size_t>(size) : 0;
  const turn inner_turn(*this);
  return local_.pubsetbuf(memory, size) != nullptr ? this : nullptr;
}

void filebuf::imbue(const std::locale& wanted) {
  if (by_url_) {
    // For a path that may be opened later. What is open goes on as it is.
    local_.pubimbue(wanted);
    if (converts(wanted)) fail(errc::not_supported, conversion_refused);
    return;
  }
  const turn inner_turn(*this);
  local_.pubimbue(wanted);
}

}  // namespace ucx
