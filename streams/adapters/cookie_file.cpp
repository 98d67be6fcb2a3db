#include "adapters/cookie_file.hpp"

#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <map>
#include <mutex>
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
/// its files when that is gone.
class cookie_file::open_files {
 public:
  static open_files& all() {
    static open_files* const only = new open_files;  // never destroyed: files outlive everything
    return *only;
  }
  /// A child of fork() finds its parent's files here, too, and the lock free.
  open_files() {
    ::pthread_atfork([] { all().mutex_.lock(); }, [] { all().mutex_.unlock(); },
                     [] { all().mutex_.unlock(); });
  }

  void add(std::FILE* opened, cookie_file* behind) {
    const std::lock_guard guard(mutex_);
    files_.emplace(opened, behind);
  }
  void remove(const cookie_file* gone) noexcept {
    const std::lock_guard guard(mutex_);
    std::erase_if(files_, [gone](const auto& each) { return each.second == gone; });
  }
  /// In a child of fork() the FILE goes, and another one may get its address. The cookie_file stays
  /// here, by its own address.
  void leave(cookie_file* inherited) noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = files_.find(inherited->file_);
    if (found == files_.end() || found->second != inherited) return;
    auto left = files_.extract(found);
    left.key() = reinterpret_cast<std::FILE*>(inherited);
    files_.insert(std::move(left));
  }
  cookie_file* find(std::FILE* opened) noexcept {
    const std::lock_guard guard(mutex_);
    const auto found = files_.find(opened);
    return found == files_.end() ? nullptr : found->second;
  }
  bool have_ended() const noexcept { return ended_.load(std::memory_order_relaxed); }

  void close() noexcept {
    const std::lock_guard guard(mutex_);
    for (const auto& [opened, behind] : files_) {
      if (behind->made_.is_inherited()) continue;
      if (::ftrylockfile(opened) != 0) continue;  // another thread is within
      ::fflush_unlocked(opened);
      behind->attempt(-1, [own = behind] { return own->buffer_.close() == nullptr ? -1 : 0; });
      ::funlockfile(opened);
    }
    ended_.store(true, std::memory_order_relaxed);
  }

 private:
  std::mutex mutex_;
  std::map<std::FILE*, cookie_file*> files_;
  std::atomic<bool> ended_{false};
};

void cookie_file::close_all() noexcept { open_files::all().close(); }

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
    open_files::all().add(file, made);
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

cookie_file* cookie_file::behind(std::FILE* opened) noexcept {
  return open_files::all().find(opened);
}

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
  } else if (open_files::all().have_ended()) {
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
    open_files::all().leave(own);
    own->fail(errc::forked_child);
    return -1;  // and is left alone: its connection is the parent's
  }
  // A file that the end of the program has closed before has nothing more to say.
  const int result = own->attempt(
      -1, [own] { return !own->buffer_.is_open() || own->buffer_.close() != nullptr ? 0 : -1; });
  const int why = errno;
  open_files::all().remove(own);
  delete own;
  if (result != 0) errno = why;
  return result;
}

}  // namespace ucx::detail
