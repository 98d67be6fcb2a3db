#include "file/file_facts.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace ucx::detail {

file_facts facts_from(const struct ::stat& about) noexcept {
  file_facts made;
  made.is_directory = S_ISDIR(about.st_mode);
  made.size = made.is_directory ? 0 : static_cast<std::uint64_t>(about.st_size);
  made.modified = {about.st_mtim.tv_sec, static_cast<std::uint32_t>(about.st_mtim.tv_nsec)};
  made.links = about.st_nlink;
  const std::array<std::uint64_t, 7> identity{static_cast<std::uint64_t>(about.st_dev),
                                              static_cast<std::uint64_t>(about.st_ino),
                                              static_cast<std::uint64_t>(about.st_size),
                                              static_cast<std::uint64_t>(about.st_mtim.tv_sec),
                                              static_cast<std::uint64_t>(about.st_mtim.tv_nsec),
                                              static_cast<std::uint64_t>(about.st_ctim.tv_sec),
                                              static_cast<std::uint64_t>(about.st_ctim.tv_nsec)};
  made.generation = XXH3_64bits(identity.data(), sizeof identity);
  return made;
}

void tell(entry& described, const file_facts& facts) noexcept {
  described.size = facts.size;
  described.generation = facts.generation;
  described.modified = facts.modified;
}

bool has_only_lost_names(const file_facts& now, const file_facts& before) noexcept {
  return now.links < before.links && now.size == before.size && now.modified == before.modified;
}

namespace {

/// Returns whether the call is not to be had here: the kernel lacks it, or a filter of system
/// calls, as containers have, denies it. EINVAL is what glibc says where the kernel lacks it.
bool is_denied(int number) noexcept {
  return number == ENOSYS || number == EPERM || number == EINVAL;
}

std::optional<file_facts> ask(int descriptor, int how) noexcept {
  struct ::statx about = {};
  struct ::stat same = {};
  if (::statx(descriptor, "", AT_EMPTY_PATH | how, STATX_BASIC_STATS, &about) != 0) {
    if (!is_denied(errno) || ::fstat(descriptor, &same) != 0) return std::nullopt;
    return facts_from(same);
  }
  same.st_dev = ::makedev(about.stx_dev_major, about.stx_dev_minor);
  same.st_ino = about.stx_ino;
  same.st_mode = about.stx_mode;
  same.st_nlink = about.stx_nlink;
  same.st_size = static_cast<off_t>(about.stx_size);
  same.st_mtim = {about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec};
  same.st_ctim = {about.stx_ctime.tv_sec, about.stx_ctime.tv_nsec};
  return facts_from(same);
}

}  // namespace

std::optional<file_facts> known_facts(int descriptor) noexcept {
  return ask(descriptor, AT_STATX_DONT_SYNC);
}

std::optional<file_facts> fresh_facts(int descriptor) noexcept {
  return ask(descriptor, AT_STATX_FORCE_SYNC);
}

std::uint64_t file_identity(int descriptor) noexcept {
  struct ::statx about = {};
  if (::statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_BTIME,
              &about) != 0) {
    struct ::stat same = {};
    if (!is_denied(errno) || ::fstat(descriptor, &same) != 0) return 0;
    about = {};
    about.stx_mask = STATX_INO;
    about.stx_ino = same.st_ino;
    about.stx_dev_major = ::gnu_dev_major(same.st_dev);
    about.stx_dev_minor = ::gnu_dev_minor(same.st_dev);
  }
  if ((about.stx_mask & STATX_INO) == 0) return 0;
  // Numbers of inodes are used again. Where a file system does not tell when a file was made, they
  // are all there is.
  const bool knows_birth = (about.stx_mask & STATX_BTIME) != 0;
  const std::array<std::uint64_t, 5> identity{
      about.stx_dev_major, about.stx_dev_minor, about.stx_ino,
      knows_birth ? static_cast<std::uint64_t>(about.stx_btime.tv_sec) : 0,
      knows_birth ? about.stx_btime.tv_nsec : 0};
  return std::max<std::uint64_t>(XXH3_64bits(identity.data(), sizeof identity), 1);
}

}  // namespace ucx::detail
