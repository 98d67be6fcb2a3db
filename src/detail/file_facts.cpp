#include "detail/file_facts.hpp"

#include <fcntl.h>
#include <sys/sysmacros.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <chrono>

namespace ucx::detail {

file_facts facts_from(const struct ::stat& about) noexcept {
  file_facts made;
  made.is_directory = S_ISDIR(about.st_mode);
  made.size = made.is_directory ? 0 : static_cast<std::uint64_t>(about.st_size);
  constexpr std::int64_t second = 1'000'000'000;
  made.modified = about.st_mtim.tv_sec * second + about.st_mtim.tv_nsec;
  const std::array<std::uint64_t, 5> identity{
      static_cast<std::uint64_t>(about.st_dev), static_cast<std::uint64_t>(about.st_ino),
      static_cast<std::uint64_t>(about.st_size), static_cast<std::uint64_t>(made.modified),
      static_cast<std::uint64_t>(about.st_ctim.tv_sec * second + about.st_ctim.tv_nsec)};
  made.generation = XXH3_64bits(identity.data(), sizeof identity);
  return made;
}

void tell(entry& described, const file_facts& facts) noexcept {
  described.size = facts.size;
  described.generation = facts.generation;
  described.modified = std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::nanoseconds(std::max<std::int64_t>(facts.modified, 0))));
}

namespace {

std::optional<file_facts> ask(int descriptor, int how) noexcept {
  struct ::statx about = {};
  if (::statx(descriptor, "", AT_EMPTY_PATH | how, STATX_BASIC_STATS, &about) != 0) {
    return std::nullopt;
  }
  struct ::stat same = {};
  same.st_dev = ::makedev(about.stx_dev_major, about.stx_dev_minor);
  same.st_ino = about.stx_ino;
  same.st_mode = about.stx_mode;
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
              &about) != 0 ||
      (about.stx_mask & STATX_INO) == 0) {
    return 0;
  }
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
