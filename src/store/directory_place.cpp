#include "store/directory_place.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

namespace ucx::detail {
namespace {

constexpr int to_go_up = O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
constexpr int most_steps = 4096;  // as many as the longest path has

enum class answer { yes, no, unknown };

/// Returns whether a path leads to this directory.
answer leads_to(const char* path, const struct ::stat& directory) noexcept {
  struct ::stat named = {};
  if (::stat(path, &named) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? answer::no : answer::unknown;
  }
  const bool is_it = named.st_dev == directory.st_dev && named.st_ino == directory.st_ino;
  return is_it ? answer::yes : answer::no;
}

/// Returns whether what the system has as the path of the directory now leads there.
answer is_found(int directory, const struct ::stat& about) noexcept {
  const std::array<char, 32> link = [&] {
    std::array<char, 32> made = {};
    std::snprintf(made.data(), made.size(), "/proc/self/fd/%d", directory);
    return made;
  }();
  constexpr int most_attempts = 8;  // it is renamed meanwhile
  std::array<char, 4097> before = {};
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    std::array<char, 4097> path = {};
    const ::ssize_t size = ::readlink(link.data(), path.data(), path.size() - 1);
    if (size <= 0 || path[0] != '/') return answer::unknown;
    if (path == before) return answer::no;
    const answer told = leads_to(path.data(), about);
    if (told != answer::no) return told;
    before = path;
  }
  return answer::unknown;
}

}  // namespace

directory_place::directory_place(int directory, const std::filesystem::path& path)
    : top_(top_above(directory, {})) {
  std::error_code unknown;
  path_ = std::filesystem::absolute(path, unknown);
}

directory_place::top directory_place::look_at(int directory) noexcept {
  struct ::stat about = {};
  if (::fstat(directory, &about) != 0) return {};
  top made{.device = about.st_dev, .inode = about.st_ino, .is_known = true};
  struct ::statx more = {};
  // Two mounts of one file system have the same root. A filter of system calls may deny this.
  const bool is_told = ::statx(directory, "", AT_EMPTY_PATH, STATX_MNT_ID, &more) == 0 &&
                       (more.stx_mask & STATX_MNT_ID) != 0;
  if (is_told) made.mount = more.stx_mnt_id;
  return made;
}

/// Goes up as far as it can: to the root of the process, or of the machine where the directory is
/// not below that. In a file system that was unmounted, it ends at the root of that. It stops at
/// `known`, which a process that was moved to another root has passed.
directory_place::top directory_place::top_above(int directory, const top& known) noexcept {
  top here = look_at(directory);
  owned_descriptor held;
  int at = directory;
  for (int step = 0; step < most_steps && here.is_known; ++step) {
    if (known.is_known && here == known) return here;
    owned_descriptor above(::openat(at, "..", to_go_up));
    if (!above) return {};
    const top next = look_at(above.get());
    if (next == here) return here;
    here = next;
    held = std::move(above);
    at = held.get();
  }
  return {};
}

bool directory_place::is_gone(int directory) const noexcept {
  struct ::stat mine = {};
  if (::fstat(directory, &mine) != 0 || mine.st_nlink == 0) return true;
  if (!path_.empty() && leads_to(path_.c_str(), mine) == answer::yes) return false;
  const top end = top_above(directory, top_);
  if (!end.is_known) return false;
  const owned_descriptor root(::open("/", to_go_up));
  // Below the root of the process the system has a path for it.
  if (root && look_at(root.get()) == end) return is_found(directory, mine) == answer::no;
  return top_.is_known && !(end == top_);
}

}  // namespace ucx::detail
