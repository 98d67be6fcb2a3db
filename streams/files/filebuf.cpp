#include "ucx/fstream.hpp"

#include <cerrno>
#include <memory>
#include <new>
#include <utility>

#include "engine/published_source.hpp"
#include "engine/stream_engine.hpp"
#include "files/errno_of.hpp"
#include "files/filebuf_turn.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/url.hpp"

namespace ucx {
namespace {

using std::ios_base;

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

}  // namespace

filebuf::filebuf() : local_(*this) {}

filebuf::filebuf(filebuf&& other)
    : std::streambuf(other),
      local_(*this, other.local_to_move()),
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
      write_foreign_area();
      lend_areas();  // what is published ends with its own buffer, which is destroyed next
    } else {
      close();
    }
  } catch (...) {
    // A local file's conversion failed. It is not reported: std::filebuf does not report it either.
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

filebuf::local_file&& filebuf::local_to_move() noexcept {
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

filebuf* filebuf::open_named(const char* name, ios_base::openmode mode,
                             const stream_options& options) {
  if (name == nullptr) return open_path("", mode);  // fails, as it does with std::filebuf on Linux
  if (!url::has_url_scheme(name)) return open_path(name, mode);
  return open_published(name, mode, options, [name, mode, &options] {
    const url address(name);
    if (address.name().empty()) {
      throw ucx::error(errc::bad_url, "a server is not a stream: its URL lacks a name");
    }
    const auto connect = [address] { return detail::unheard_client(address); };
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
    return detail::open_published([own] { return detail::reconnected(*own); }, name, mode, options);
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

/// Leaves in errno, for programs that ask nothing else, what `error()` says.
filebuf* filebuf::not_opened() noexcept {
  errno = detail::errno_of(error_);
  return nullptr;
}

filebuf* filebuf::open_path(const char* name, ios_base::openmode mode) {
  if (!begin_open(name)) return not_opened();
  const turn inner_turn(*this);
  if (local_.open(name, mode) != nullptr) return this;
  fail_by_errno();
  return not_opened();
}

template <class Connect>
filebuf* filebuf::open_published(std::string_view name, ios_base::openmode mode,
                                 const stream_options& options, Connect&& connect) {
  if (!begin_open(name)) return not_opened();
  const int errno_before = errno;
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
    return not_opened();
  } catch (const std::bad_alloc&) {
    fail(errc::no_memory);
    return not_opened();
  }
  by_url_ = true;
  take_areas();
  errno = errno_before;
  return this;
}

filebuf* filebuf::close() {
  if (!is_open()) return nullptr;
  bool handed_over = false;
  try {
    handed_over = hand_over();
  } catch (...) {  // out of a derived class: it is closed all the same, as std::filebuf is
    const turn inner_turn(*this);
    error_.clear();
    if (by_url_) close_published();
    throw;
  }
  const turn inner_turn(*this);
  error_.clear();
  filebuf* const closed = by_url_ ? close_published() : close_path();
  if (handed_over || closed == nullptr) return closed;
  fail(errc::io_error, "not everything that was written was taken");
  return nullptr;
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
  errno = detail::errno_of(failed);
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

std::streambuf* filebuf::setbuf(char* memory, std::streamsize size) {
  if (by_url_) return this;
  if (!is_open()) wanted_buffer_size_ = size > 1 ? static_cast<std::size_t>(size) : 0;
  const turn inner_turn(*this);
  return local_.pubsetbuf(memory, size) != nullptr ? this : nullptr;
}

void filebuf::imbue(const std::locale& wanted) {
  if (by_url_) {
    // For a path that may be opened later. An open file goes on as it is.
    local_.pubimbue(wanted);
    if (converts(wanted)) fail(errc::not_supported, conversion_refused);
    return;
  }
  const turn inner_turn(*this);
  local_.pubimbue(wanted);
}

}  // namespace ucx
