#include "store/store_directory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/file_preallocation.hpp"
#include "base/store_path.hpp"
#include "store/directory_walk.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

constexpr int to_look_at = O_PATH | O_CLOEXEC | O_NOFOLLOW;
constexpr int to_go_through = O_PATH | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY;
// A file that replaced a regular one since it was looked at must not block the open.
constexpr int without_waiting = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;

constexpr int mode_of_directories = 0777;  // as every program's, less the umask

constexpr std::uint64_t beneath = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
// From Linux 5.12 on; on the same file system, because only of that it is known whose it is.
constexpr std::uint64_t without_disk = 0x20 | RESOLVE_NO_XDEV;

/// Opens what the kernel has in memory; nothing where it would have to look for it.
owned_descriptor open_known(int root, const char* path, int flags) noexcept {
  ::open_how how = {};
  how.flags = static_cast<unsigned>(flags);
  how.resolve = beneath | without_disk;
  return owned_descriptor(static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof how)));
}

/// Returns whether a file system is on a disk of this machine, or in its memory. Opening what is
/// known there waits for no network and no program.
bool is_local(int directory) noexcept {
  struct ::statfs about = {};
  if (::fstatfs(directory, &about) != 0) return false;
  constexpr std::array<std::uint32_t, 5> local{EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
                                               F2FS_SUPER_MAGIC, TMPFS_MAGIC};
  return std::find(local.begin(), local.end(), static_cast<std::uint32_t>(about.f_type)) !=
         local.end();
}

/// Returns -1, with errno, where the kernel does not do it.
int open_by_kernel(int root, const char* path, int flags) noexcept {
  ::open_how how = {};
  how.flags = static_cast<unsigned>(flags);
  how.resolve = beneath;
  // EAGAIN: somebody renames directories meanwhile, and the kernel can not tell where it is.
  constexpr int most_attempts = 64;
  for (int attempt = 0;; ++attempt) {
    const long opened = ::syscall(SYS_openat2, root, path, &how, sizeof how);
    if (opened >= 0 || (errno != EAGAIN && errno != EINTR) || attempt == most_attempts) {
      return static_cast<int>(opened);
    }
  }
}

int open_by_component(int root, std::string_view path, int flags) noexcept {
  flags |= O_NOFOLLOW;
  owned_descriptor within;
  int at = root;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    std::array<char, 256> name = {};  // longer ones were complained about
    path.substr(0, std::min(slash, name.size() - 1)).copy(name.data(), name.size() - 1);
    const bool last = slash == std::string_view::npos;
    const int next = ::openat(at, name.data(), last ? flags : to_go_through);
    if (last || next < 0) return next;
    within = owned_descriptor(next);
    at = next;
    path.remove_prefix(slash + 1);
  }
  return ::openat(at, ".", flags);
}

/// A writable store is one file system: what would have to be copied is not moved.
std::error_code move_error(int number) noexcept {
  return number == EXDEV ? make_error_code(errc::not_supported) : store_error(number);
}

/// Moves a directory where nothing has that name: over one that is made for it.
bool move_directory(int from, const char* old_name, int to, const char* name) noexcept {
  constexpr int mode = 0700;
  if (::mkdirat(to, name, mode) != 0) return false;
  if (::renameat(from, old_name, to, name) == 0) return true;
  const int number = errno;
  ::unlinkat(to, name, AT_REMOVEDIR);
  errno = number;
  return false;
}

/// Returns false, with errno, where it is not done. A file that keeps its old name, and whose new
/// one can not be taken back either, is moved.
bool move(int from, const std::string& old_name, int to, const std::string& name,
          bool exclusive) noexcept {
  if (!exclusive) return ::renameat(from, old_name.c_str(), to, name.c_str()) == 0;
  if (::renameat2(from, old_name.c_str(), to, name.c_str(), RENAME_NOREPLACE) == 0) return true;
  // Some file systems, as NFS, do not know this. Some filters of system calls, as containers have,
  // deny it. For files a second name is as good.
  if (errno != EINVAL && errno != ENOSYS && errno != EPERM) return false;
  struct ::stat about = {};
  if (::fstatat(from, old_name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) return false;
  if (S_ISDIR(about.st_mode)) return move_directory(from, old_name.c_str(), to, name.c_str());
  if (::linkat(from, old_name.c_str(), to, name.c_str(), 0) != 0) return false;
  if (::unlinkat(from, old_name.c_str(), 0) == 0 || errno == ENOENT) return true;
  const int number = errno;
  if (::unlinkat(to, name.c_str(), 0) != 0) return true;
  errno = number;
  return false;
}

/// Returns why what has that name is not moved, or is not replaced. Only a file of a store's is,
/// and a directory where that is said.
std::error_code check_movable(int directory, const std::string& name, bool directories_too,
                              struct ::stat& about) noexcept {
  if (::fstatat(directory, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
    return store_error(errno);
  }
  if (S_ISREG(about.st_mode) || (directories_too && S_ISDIR(about.st_mode))) return {};
  return S_ISLNK(about.st_mode) ? errc::bad_name : errc::not_supported;
}

/// Looks at what `descriptor` is; -1 with errno where it is nothing that a store serves.
int look_at(int descriptor, struct ::stat& about) noexcept {
  if (::fstat(descriptor, &about) != 0) return -1;
  if (is_served(about.st_mode)) return 0;
  errno = S_ISLNK(about.st_mode) ? ELOOP : ENODEV;
  return -1;
}

}  // namespace

bool is_refused(int directory, int how) noexcept {
  return ::faccessat(directory, ".", how, AT_EACCESS) != 0 && (errno == EACCES || errno == EROFS);
}

std::error_code store_error(int number) noexcept {
  switch (number) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:  // a symbolic link is nothing to a store
    case EXDEV:
      return errc::no_such_name;
    case EACCES:
    case EPERM:
    case EROFS:
      return errc::permission_denied;
    case EMFILE:
    case ENFILE:
      return errc::too_many_files;
    case EISDIR:
    case ENXIO:
    case ENODEV:
      return errc::not_supported;
    case ENAMETOOLONG:
    case EILSEQ:
      return errc::bad_name;
    case EEXIST:
    case ENOTEMPTY:
      return errc::already_exists;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return errc::no_space;
    case ENOMEM:
      return errc::no_memory;
    case EBUSY:
    case ETXTBSY:
      return errc::busy;
    case EINVAL:
      return errc::invalid_argument;
    default:
      return errc::io_error;
  }
}

result<file_facts> facts_of(int descriptor) noexcept {
  struct ::stat about = {};
  if (look_at(descriptor, about) != 0) return failure{store_error(errno)};
  return facts_from(about);
}

result<std::shared_ptr<store_directory>> store_directory::open(const std::filesystem::path& path,
                                                               bool writable, lookup how) {
  const std::string doing = "opening the directory \"" + path.string() + "\"";
  owned_descriptor root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root) {
    const int number = errno;
    return failure{number == ENOTDIR ? make_error_code(errc::not_supported) : store_error(number),
                   doing + " (" + std::generic_category().message(number) + ")"};
  }
  const owned_descriptor probe(
      how == lookup::automatic ? open_by_kernel(root.get(), ".", to_go_through) : -1);
  std::shared_ptr<store_directory> made(
      new store_directory(std::move(root), static_cast<bool>(probe)));
  made->place_ = directory_place(made->root_.get(), path);
  made->answers_now_ = probe && is_local(made->root_.get());
  made->room_ahead_helps_ = file_preallocation::helps_in(made->root_.get());
  if (!writable) return made;
  if (const auto opened = made->open_spool(doing); !opened) return opened.why();
  return made;
}

/// Removes what a server that died has left in the spool: only the server that holds the lock puts
/// anything there.
result<void> store_directory::open_spool(const std::string& doing) {
  const std::string name(spool_name);
  constexpr int mode = 0700;
  const bool is_made = ::mkdirat(root_.get(), name.c_str(), mode) == 0 || errno == EEXIST;
  if (is_made) {
    spool_ = owned_descriptor(
        ::openat(root_.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  }
  if (!spool_ || is_refused(spool_.get(), W_OK)) {
    const int number = errno;
    return failure{store_error(number),
                   doing + " for writing: \"" + name +
                       "\" in it, where what clients write has no name yet, can not be " +
                       (is_made ? "written" : "made") + " (" +
                       std::generic_category().message(number) +
                       "); without that it can be served for reading only"};
  }
  if (::flock(spool_.get(), LOCK_EX | LOCK_NB) != 0) {
    const int number = errno;
    if (number == EWOULDBLOCK) return failure{errc::busy, doing + ": another server writes it"};
    return failure{store_error(number), doing + ": it can not be locked"};
  }
  const result<std::vector<std::string>> names = names_in(spool_.get());
  if (!names) return failure{names.why().code, doing};
  for (const std::string& left : *names) ::unlinkat(spool_.get(), left.c_str(), 0);
  return {};
}

owned_descriptor store_directory::open_beneath(const std::string& path, int flags) const noexcept {
  return owned_descriptor(
      kernel_looks_up_ ? open_by_kernel(root_.get(), path.empty() ? "." : path.c_str(), flags)
                       : open_by_component(root_.get(), path, flags));
}

/// Returns what a failed look-up means. Only of a name that is not there it asks whether the store
/// is.
std::error_code store_directory::lookup_error(int number) const noexcept {
  const std::error_code ec = store_error(number);
  return ec == errc::no_such_name && is_gone() ? make_error_code(errc::stale_store) : ec;
}

result<opened_file> store_directory::open_file(const std::string& path, bool writable) const {
  struct ::stat about = {};
  // First without opening it: to open a device, or a pipe, has consequences.
  owned_descriptor opened = open_beneath(path, to_look_at);
  if (opened && look_at(opened.get(), about) == 0) {
    if (!S_ISREG(about.st_mode)) return failure{errc::not_supported};
    opened = open_beneath(path, without_waiting | (writable ? O_RDWR : O_RDONLY));
    if (opened && look_at(opened.get(), about) == 0 && S_ISREG(about.st_mode)) {
      return opened_file{std::move(opened), facts_from(about)};
    }
  }
  return failure{lookup_error(errno)};
}

std::optional<opened_file> store_directory::open_now(const std::string& path) const {
  if (!answers_now_) return std::nullopt;
  struct ::stat about = {};
  owned_descriptor opened = open_known(root_.get(), path.c_str(), to_look_at);
  if (!opened || look_at(opened.get(), about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  opened = open_known(root_.get(), path.c_str(), without_waiting | O_RDONLY);
  if (!opened || look_at(opened.get(), about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  return opened_file{std::move(opened), facts_from(about)};
}

std::optional<file_facts> store_directory::stat_now(const std::string& path) const {
  struct ::stat about = {};
  const owned_descriptor opened =
      answers_now_ ? open_known(root_.get(), path.c_str(), to_look_at) : owned_descriptor();
  if (!opened || look_at(opened.get(), about) != 0) return std::nullopt;
  return facts_from(about);
}

result<file_facts> store_directory::stat(const std::string& path) const {
  struct ::stat about = {};
  const owned_descriptor opened = open_beneath(path, to_look_at);
  if (!opened || look_at(opened.get(), about) != 0) return failure{lookup_error(errno)};
  // The system describes also what it has removed.
  if (path.empty() && (about.st_nlink == 0 || is_gone())) return failure{errc::stale_store};
  return facts_from(about);
}

result<spooled_file> store_directory::create_unnamed() const {
  if (is_gone()) return failure{errc::stale_store};
  static std::atomic<std::uint64_t> last{0};
  constexpr int mode = 0666;  // as every program's, less the umask
  spooled_file made;
  made.name = std::to_string(::getpid()) + '.' + std::to_string(++last);
  made.descriptor = owned_descriptor(::openat(
      spool_.get(), made.name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!made.descriptor) return failure{store_error(errno)};
  return made;
}

void store_directory::discard(const std::string& spooled) const noexcept {
  ::unlinkat(spool_.get(), spooled.c_str(), 0);
}

owned_descriptor store_directory::open_parent(std::string_view path) const {
  return open_beneath(std::string(split(path).directory), to_go_through);
}

/// Opens the directory of `path`, with those made that are missing.
owned_descriptor store_directory::make_parent(std::string_view path) const {
  owned_descriptor found = open_parent(path);
  if (found || errno != ENOENT) return found;
  const std::string_view directory = split(path).directory;
  if (directory.empty()) return found;
  const owned_descriptor above = make_parent(directory);
  if (!above) return {};
  const std::string name(split(directory).name);
  if (::mkdirat(above.get(), name.c_str(), mode_of_directories) != 0 && errno != EEXIST) return {};
  return owned_descriptor(::openat(above.get(), name.c_str(), to_go_through));
}

std::error_code store_directory::check_replaced(const std::string& path,
                                                bool exclusive) const noexcept {
  struct ::stat about = {};
  const owned_descriptor found = open_beneath(path, to_look_at);
  if (!found || ::fstat(found.get(), &about) != 0) return {};  // the move says what is wrong
  if (exclusive) return errc::already_exists;
  if (S_ISREG(about.st_mode)) return {};
  return S_ISLNK(about.st_mode) ? errc::bad_name : errc::not_supported;
}

result<replaced_file> store_directory::give_name(const std::string& spooled,
                                                 const std::string& path, bool exclusive,
                                                 last_parent* last) const {
  if (is_gone()) return failure{errc::stale_store};
  last_parent mine;
  last_parent& to = last != nullptr ? *last : mine;
  const std::string directory(split(path).directory);
  if (to.opened && to.path == directory) {
    result<replaced_file> moved = move_in(spooled, to.opened.get(), path, exclusive);
    // Else somebody has taken the directory away meanwhile.
    if (moved || moved.why().code != errc::no_such_name) return moved;
  }
  to = {.path = directory, .opened = make_parent(path)};
  if (!to.opened) return failure{move_error(errno)};
  return move_in(spooled, to.opened.get(), path, exclusive);
}

result<replaced_file> store_directory::move_in(const std::string& spooled, int parent,
                                               const std::string& path, bool exclusive) const {
  const std::string name(split(path).name);
  replaced_file replaced;
  // Most are new: then there is nothing to look at.
  if (move(spool_.get(), spooled, parent, name, true)) return replaced;
  if (!exclusive && errno == EEXIST) {
    struct ::stat about = {};
    const std::error_code ec = check_movable(parent, name, false, about);
    if (ec && ec != errc::no_such_name) return failure{ec};  // else it is gone by now
    if (!ec && room_ahead_helps_) {
      replaced.kept = owned_descriptor(::openat(parent, name.c_str(), to_look_at));
    }
    if (!ec) replaced.facts = facts_from(about);
    if (move(spool_.get(), spooled, parent, name, false)) return replaced;
  }
  return failure{move_error(errno)};
}

/// The directories on the way may have been made just now, by whomever.
std::error_code store_directory::sync_name(std::string_view path) const {
  while (!path.empty()) {
    path = split(path).directory;
    const owned_descriptor each = open_beneath(std::string(path), to_read_names);
    if (!each || ::fsync(each.get()) != 0) return errc::io_error;
  }
  return {};
}

result<opened_file> store_directory::open_or_create(const std::string& path) const {
  if (is_gone()) return failure{errc::stale_store};
  constexpr int most_attempts = 8;  // somebody makes it and takes it away all the time
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    result<opened_file> opened = open_file(path, true);
    if (opened || opened.why().code != errc::no_such_name) return opened;
    if (const std::error_code taken = check_replaced(path, false)) return failure{taken};
    const owned_descriptor parent = make_parent(path);
    constexpr int mode = 0666;
    owned_descriptor made;
    if (parent) {
      made = owned_descriptor(::openat(parent.get(), std::string(split(path).name).c_str(),
                                       O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    }
    if (made) {
      const result<file_facts> facts = facts_of(made.get());
      if (!facts) return facts.why();
      return opened_file{std::move(made), *facts};
    }
    const std::error_code ec = store_error(errno);
    if (ec != errc::already_exists) return failure{ec};
  }
  return failure{errc::busy};
}

result<file_facts> store_directory::remove(const std::string& path) const {
  result<file_facts> was = stat(path);
  if (!was) return was;
  const owned_descriptor parent = open_parent(path);
  const std::string name(split(path).name);
  const int how = was->is_directory ? AT_REMOVEDIR : 0;
  if (!parent || ::unlinkat(parent.get(), name.c_str(), how) != 0) {
    return failure{store_error(errno)};
  }
  return was;
}

result<file_facts> store_directory::make_directory(const std::string& path) const {
  if (is_gone()) return failure{errc::stale_store};
  const owned_descriptor parent = make_parent(path);
  const std::string name(split(path).name);
  if (!parent || ::mkdirat(parent.get(), name.c_str(), mode_of_directories) != 0) {
    return failure{store_error(errno)};
  }
  return stat(path);
}

result<file_facts> store_directory::rename(const std::string& from, const std::string& to,
                                           bool exclusive, bool files_only) const {
  if (is_gone()) return failure{errc::stale_store};
  // A store moves only entries that it serves.
  if (const result<file_facts> served = stat(from); !served) return served.why();
  const owned_descriptor old_parent = open_parent(from);
  const owned_descriptor parent = old_parent ? make_parent(to) : owned_descriptor();
  if (!parent) return failure{move_error(errno)};
  const std::string old_name(split(from).name);
  const std::string name(split(to).name);
  struct ::stat about = {};
  std::error_code ec = check_movable(old_parent.get(), old_name, true, about);
  if (ec) return failure{ec};
  if (files_only && S_ISDIR(about.st_mode)) return failure{errc::permission_denied};
  const ino_t moved = about.st_ino;
  about = {};
  if (!exclusive) ec = check_movable(parent.get(), name, true, about);
  if (ec && ec != errc::no_such_name) return failure{ec};
  if (ec) about = {};
  if (!move(old_parent.get(), old_name, parent.get(), name, exclusive)) {
    return failure{move_error(errno)};
  }
  // Two names of one file stay as they are.
  return about.st_ino == moved ? file_facts() : facts_from(about);
}

}  // namespace ucx::detail
