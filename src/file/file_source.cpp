#include "file/file_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

errc open_error(int number) noexcept {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
      return errc::no_such_name;
    case EACCES:
    case EPERM:
      return errc::permission_denied;
    case EMFILE:
    case ENFILE:
      return errc::too_many_files;
    case ENXIO:  // a socket
    case ENODEV:
      return errc::not_supported;
    case ENAMETOOLONG:
    case ELOOP:
    case EINVAL:
      return errc::invalid_argument;
    case ENOMEM:
      return errc::no_memory;
    default:
      return errc::io_error;
  }
}

failure unopened(const std::filesystem::path& path, errc code, const std::string& why) {
  return {code, "opening the file \"" + path.string() + "\" (" + why + ")"};
}

}  // namespace

result<std::shared_ptr<open_file>> open_file::open(const std::filesystem::path& path) {
  // Nothing that is no regular file may keep the caller waiting before that is known.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) {
    const int number = errno;
    return unopened(path, open_error(number), std::generic_category().message(number));
  }
  std::shared_ptr<open_file> made(new open_file(descriptor));
  struct ::stat about = {};
  if (::fstat(descriptor, &about) != 0) {
    return unopened(path, errc::io_error, std::generic_category().message(errno));
  }
  if (!S_ISREG(about.st_mode)) return unopened(path, errc::not_supported, "not a regular file");
  made->opened_ = made->settled_ = facts_from(about);
  return made;
}

std::shared_ptr<open_file> open_file::adopt(int descriptor) {
  std::shared_ptr<open_file> made(new open_file(descriptor));
  made->adopted_ = true;
  struct ::stat about = {};
  if (::fstat(descriptor, &about) == 0) made->opened_ = made->settled_ = facts_from(about);
  return made;
}

open_file::~open_file() {
  if (!adopted_) ::close(descriptor_);
}

std::size_t open_file::read_now(std::uint64_t offset, std::span<std::byte> into) noexcept {
  std::size_t count = 0;
  while (count < into.size() && !may_wait_always_.load(std::memory_order_relaxed)) {
    const ::iovec rest{into.data() + count, into.size() - count};
    const ssize_t got =
        ::preadv2(descriptor_, &rest, 1, static_cast<off_t>(offset + count), RWF_NOWAIT);
    if (got < 0 && (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINVAL)) {
      may_wait_always_.store(true, std::memory_order_relaxed);
    }
    // Zero is not believed to be the file's end: Linux 5.9 and 5.10 say it anywhere.
    if (got <= 0) break;
    count += static_cast<std::size_t>(got);
  }
  return count;
}

std::error_code open_file::read(std::uint64_t offset, std::span<std::byte> into) noexcept {
  std::size_t count = 0;
  while (count < into.size()) {
    const ssize_t got = ::pread(descriptor_, into.data() + count, into.size() - count,
                                static_cast<off_t>(offset + count));
    if (got == 0) return errc::content_changed;
    if (got > 0) {
      count += static_cast<std::size_t>(got);
    } else if (errno != EINTR) {
      return errc::io_error;
    }
  }
  return {};
}

result<file_facts> open_file::facts() const noexcept {
  if (const std::optional<file_facts> facts = fresh_facts(descriptor_)) return settled(*facts);
  return failure{errc::io_error};
}

file_facts open_file::settled(const file_facts& found) const noexcept {
  const std::lock_guard guard(settled_mutex_);
  if (has_only_lost_names(found, settled_)) {
    file_facts same = found;
    same.generation = settled_.generation;
    return same;
  }
  return settled_ = found;
}

}  // namespace ucx::detail
