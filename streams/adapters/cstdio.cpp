#include "ucx/cstdio.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <new>
#include <utility>

#include "adapters/cookie_file.hpp"
#include "files/errno_of.hpp"
#include "ucx/client.hpp"
#include "ucx/error.hpp"
#include "ucx/fstream.hpp"
#include "ucx/url.hpp"

namespace ucx {
namespace {

/// Files that are only written gather bytes in long buffers, because each buffer costs a flush.
/// Files that are read need none beside the filebuf's own, and a short one keeps scattered reads
/// short.
std::size_t buffer_size_for(const detail::file_mode& mode, const stream_options& options) {
  constexpr std::size_t of_both = std::size_t{64} << 10U;
  if (mode.normal == "r") return 0;
  return mode.normal.ends_with('+') ? of_both : options.buffer_size;
}

struct closes_file {
  void operator()(std::FILE* opened) const noexcept { std::fclose(opened); }
};

class file_lock {
 public:
  explicit file_lock(std::FILE* locked) noexcept : locked_(locked) { ::flockfile(locked_); }
  file_lock(const file_lock&) = delete;
  file_lock& operator=(const file_lock&) = delete;
  ~file_lock() { ::funlockfile(locked_); }

 private:
  std::FILE* const locked_;
};

/// Makes a file of what `open(buffer, mode)` opens.
template <class Open>
std::FILE* opened_by(const char* mode, const stream_options& options, std::error_code& ec,
                     Open&& open) {
  ec.clear();
  std::unique_ptr<std::FILE, closes_file> made;
  try {
    const detail::file_mode parsed = detail::parse_file_mode(mode, ec);
    if (!ec) {
      made.reset(detail::cookie_file::make(parsed, buffer_size_for(parsed, options)));
      if (!made) ec = errc::no_memory;
    }
    if (!ec) {
      // Without the FILE's lock: who flushes all files waits for it, and holds another one
      // meanwhile that the opening of any file takes.
      filebuf opened;
      if (open(opened, parsed.wanted) != nullptr) {
        // Where a file of the system's begins, too.
        if (parsed.normal == "a") opened.pubseekoff(0, std::ios_base::end);
        const file_lock guard(made.get());
        detail::cookie_file::behind(made.get())->take(std::move(opened));
      } else {
        ec = opened.error();
      }
    }
  } catch (const std::bad_alloc&) {
    ec = errc::no_memory;
  }
  if (!ec) return made.release();
  made.reset();
  errno = detail::errno_of(ec);
  return nullptr;
}

}  // namespace

std::FILE* open_file(const std::string& name, const char* mode, const stream_options& options,
                     std::error_code& ec) {
  if (!url::has_url_scheme(name)) {
    std::FILE* const local = std::fopen(name.c_str(), mode);
    ec = local != nullptr ? std::error_code() : std::error_code(errno, std::generic_category());
    return local;
  }
  return opened_by(mode, options, ec, [&](filebuf& buffer, std::ios_base::openmode wanted) {
    return buffer.open(name, wanted, options);
  });
}

std::FILE* open_file(const std::string& name, const char* mode, const stream_options& options) {
  std::error_code told_by_errno;
  return open_file(name, mode, options, told_by_errno);
}

std::FILE* open_file(client& from, std::string_view name, const char* mode,
                     const stream_options& options, std::error_code& ec) {
  return opened_by(mode, options, ec, [&](filebuf& buffer, std::ios_base::openmode wanted) {
    return buffer.open(from, name, wanted, options);
  });
}

std::FILE* open_file(client& from, std::string_view name, const char* mode,
                     const stream_options& options) {
  std::error_code told_by_errno;
  return open_file(from, name, mode, options, told_by_errno);
}

std::error_code file_error(std::FILE* opened) noexcept {
  const detail::cookie_file* const behind = detail::cookie_file::behind(opened);
  if (behind == nullptr) return {};
  ::flockfile(opened);
  const std::error_code why = behind->failure();
  ::funlockfile(opened);
  return why;
}

std::string file_error_message(std::FILE* opened) {
  const detail::cookie_file* const behind = detail::cookie_file::behind(opened);
  if (behind == nullptr) return {};
  ::flockfile(opened);
  std::string text = behind->failure_text();
  if (text.empty() && behind->failure()) text = behind->failure().message();
  ::funlockfile(opened);
  return text;
}

}  // namespace ucx
