#include "adapters/cookie_file.hpp"

#include <atomic>
#include <cerrno>
#include <new>
#include <utility>

#include "engine/published_source.hpp"
#include "files/errno_of.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

using std::ios_base;

}  // namespace

file_mode parse_file_mode(const char* mode, std::error_code& ec) {
  const std::string text = mode == nullptr ? "" : mode;
  const std::string options = text.empty() ? text : text.substr(1, text.find(',') - 1);
  const bool both = options.find('+') != std::string::npos;
  const bool fresh = options.find('x') != std::string::npos;
  file_mode made;
  made.normal = text.substr(0, 1) + (both ? "+" : "");
  if (text.starts_with('r')) {
    made.wanted = both ? ios_base::in | ios_base::out : ios_base::in;
  } else if (text.starts_with('w')) {
    made.wanted = both ? ios_base::in | ios_base::out | ios_base::trunc : ios_base::out;
  } else if (text.starts_with('a')) {
    made.wanted = both ? ios_base::in | ios_base::app : ios_base::app;
  } else {
    ec = errc::invalid_argument;
  }
  if (fresh && !text.starts_with('r')) {
    if (noreplace == ios_base::openmode()) ec = errc::not_supported;
    made.wanted |= noreplace;
  }
  if (text.find(",ccs=") != std::string::npos) ec = errc::not_supported;
  return made;
}

/// All open files, to be closed while there is still a network to do it over. The C library flushes
/// its files when that is gone. No lock: a child of fork() finds its parent's files here, whatever
/// the parent's threads did, and fork() waits for nothing. Places are used again, and never freed.
class cookie_file::open_files {
 public:
  /// Errors: std::bad_alloc.
  static void add(std::FILE* opened, cookie_file* behind) {
    place* taken = nullptr;
    for (place* each = first; each != nullptr && taken == nullptr; each = each->next) {
      use expected = use::none;
      if (each->now.compare_exchange_strong(expected, use::busy)) taken = each;
    }
    if (taken == nullptr) {
      taken = new place;
      taken->next = first;
      while (!first.compare_exchange_weak(taken->next, taken)) {
      }
    }
    taken->behind = behind;
    taken->opened = opened;
    taken->now = use::open;
  }
  static void remove(const cookie_file* gone) noexcept {
    place* const left = place_of(gone);
    if (left == nullptr) return;
    // Another thread may be about to look whether it can close this file, and finds that it can
    // not.
    use expected = use::open;
    while (!left->now.compare_exchange_strong(expected, use::busy)) {
      left->now.wait(expected);
      expected = use::open;
    }
    left->opened = nullptr;
    left->behind = nullptr;
    left->now = use::none;
  }
  /// In a child of fork() the FILE goes, and another one may get its address. The cookie_file stays
  /// here.
  static void leave(const cookie_file* inherited) noexcept {
    if (place* const left = place_of(inherited)) left->opened = nullptr;
  }
  static cookie_file* find(const std::FILE* opened) noexcept {
    if (opened == nullptr) return nullptr;
    for (const place* each = first; each != nullptr; each = each->next) {
      if (each->opened == opened) return each->behind;
    }
    return nullptr;
  }
  static bool have_ended() noexcept { return ended.load(std::memory_order_relaxed); }

  static void close() noexcept {
    for (place* each = first; each != nullptr; each = each->next) {
      use expected = use::open;
      if (!each->now.compare_exchange_strong(expected, use::busy)) continue;
      if (!each->behind.load()->made_.is_inherited()) close(each->opened, *each->behind);
      each->now = use::open;
      each->now.notify_all();
    }
    ended.store(true, std::memory_order_relaxed);
  }

 private:
  enum class use {
    none,
    open,
    busy,  ///< A thread has it for itself. In a child that thread may be missing: it stays so.
  };
  struct place {
    std::atomic<use> now{use::busy};
    std::atomic<std::FILE*> opened{nullptr};
    std::atomic<cookie_file*> behind{nullptr};
    place* next = nullptr;
  };

  static place* place_of(const cookie_file* file) noexcept {
    place* each = first;
    while (each != nullptr && each->behind != file) each = each->next;
    return each;
  }
  static void close(std::FILE* opened, cookie_file& behind) noexcept {
    if (::ftrylockfile(opened) != 0) return;  // another thread is within
    ::fflush_unlocked(opened);
    behind.attempt(-1, [&] { return behind.buffer_.close() == nullptr ? -1 : 0; });
    ::funlockfile(opened);
  }

  static inline constinit std::atomic<place*> first{nullptr};
  static inline constinit std::atomic<bool> ended{false};
};

void cookie_file::close_all() noexcept { open_files::close(); }

namespace {

/// Made when the library is loaded: destroyed behind the program's static objects, which may write
/// to files of theirs, and before UCX ends.
struct closes_at_exit {
  ~closes_at_exit() { cookie_file::close_all(); }
};
const closes_at_exit at_exit;

}  // namespace

std::FILE* cookie_file::make(const file_mode& mode, std::size_t buffer_size) {
  auto* const made = new (std::nothrow) cookie_file;
  if (made == nullptr) return nullptr;
  const ::cookie_io_functions_t functions{&read, &write, &seek, &close};
  std::FILE* const file = ::fopencookie(made, mode.normal.c_str(), functions);
  if (file == nullptr) {
    delete made;
    return nullptr;
  }
  made->file_ = file;
  try {
    open_files::add(file, made);
    if (buffer_size > BUFSIZ) {
      made->area_ = std::make_unique_for_overwrite<char[]>(buffer_size);
      std::setvbuf(file, made->area_.get(), _IOFBF, buffer_size);
    }
    return file;
  } catch (const std::bad_alloc&) {
    std::fclose(file);
    return nullptr;
  }
}

cookie_file* cookie_file::behind(std::FILE* opened) noexcept { return open_files::find(opened); }

void cookie_file::fail(std::error_code why, std::string text) noexcept {
  failure_ = why;
  failure_text_ = std::move(text);
  errno = errno_of(why);
}

/// A child of fork() has its parent's connections, and may not use them; and at the very end of the
/// program there are none.
bool cookie_file::may_go_on() noexcept {
  if (made_.is_inherited()) {
    fail(errc::forked_child);
  } else if (open_files::have_ended()) {
    fail(errc::closed);
  } else {
    return true;
  }
  return false;
}

/// Runs `call`, which gives `failed` where the buffer's error says why; nothing is thrown.
template <class Result, class Call>
Result cookie_file::attempt(Result failed, Call&& call) noexcept {
  try {
    const Result result = call();
    if (result == failed) {
      const std::error_code why = buffer_.error();
      fail(why ? why : make_error_code(errc::invalid_argument), buffer_.error_message());
    }
    return result;
  } catch (const std::bad_alloc&) {
    fail(errc::no_memory);
  } catch (const std::system_error& failure) {
    fail(failure.code(), failure.what());
  } catch (...) {
    fail(errc::unexpected);
  }
  return failed;
}

::ssize_t cookie_file::read(void* self, char* into, std::size_t count) noexcept {
  auto& own = *static_cast<cookie_file*>(self);
  if (!own.may_go_on()) return -1;
  return own.attempt<::ssize_t>(-1, [&]() -> ::ssize_t {
    return own.buffer_.is_open() ? own.buffer_.sgetn(into, static_cast<std::streamsize>(count))
                                 : -1;
  });
}

/// The C library hands over alike what the program flushes, and what a full buffer gives. So all of
/// it is made visible, and the buffer is long. Returns 0 for a failure, as the C library expects.
::ssize_t cookie_file::write(void* self, const char* from, std::size_t count) noexcept {
  auto& own = *static_cast<cookie_file*>(self);
#ifdef __GLIBC__
  // glibc keeps a note of the position, and does not move it when it writes to something that is no
  // descriptor. A seek from there would go astray. Without a note glibc asks.
  own.file_->_offset = -1;
#endif
  if (!own.may_go_on()) return 0;
  ::ssize_t taken = 0;
  own.attempt(-1, [&] {
    taken = own.buffer_.sputn(from, static_cast<std::streamsize>(count));
    return taken == static_cast<::ssize_t>(count) ? 0 : -1;
  });
  const int why = errno;
  const bool is_short = taken < static_cast<::ssize_t>(count);
  if (taken > 0 && own.attempt(-1, [&] { return own.buffer_.pubsync(); }) != 0) return 0;
  if (is_short) errno = why;
  return taken;
}

int cookie_file::seek(void* self, std::int64_t* position, int whence) noexcept {
  auto& own = *static_cast<cookie_file*>(self);
  if (!own.may_go_on()) return -1;
  const ios_base::seekdir from = whence == SEEK_SET   ? ios_base::beg
                                 : whence == SEEK_CUR ? ios_base::cur
                                                      : ios_base::end;
  const std::streamoff now = own.attempt<std::streamoff>(-1, [&]() -> std::streamoff {
    return own.buffer_.is_open() ? std::streamoff(own.buffer_.pubseekoff(*position, from)) : -1;
  });
  if (now < 0) return -1;
  *position = now;
  return 0;
}

int cookie_file::close(void* self) noexcept {
  auto* const own = static_cast<cookie_file*>(self);
  if (own->made_.is_inherited()) {
    open_files::leave(own);
    own->fail(errc::forked_child);
    return -1;  // and is left alone: its connection is the parent's
  }
  // A file that the end of the program has closed before has nothing more to say.
  const int result = own->attempt(
      -1, [own] { return !own->buffer_.is_open() || own->buffer_.close() != nullptr ? 0 : -1; });
  const int why = errno;
  open_files::remove(own);
  delete own;
  if (result != 0) errno = why;
  return result;
}

}  // namespace ucx::detail
