#include "store/memory_directory.hpp"

#include <fcntl.h>
#include <ftw.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include "base/directory_entries.hpp"
#include "store/store_directory.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

namespace fs = std::filesystem;

/// What can not be removed stays. By the system's calls: those of std::filesystem end the process
/// where there is no memory for them.
void remove_tree(const fs::path& gone) noexcept {
  const auto remove_one = [](const char* each, const struct ::stat*, int, ::FTW*) {
    static_cast<void>(::remove(each));
    return 0;
  };
  constexpr int most_open = 16;
  static_cast<void>(::nftw(gone.c_str(), remove_one, most_open, FTW_DEPTH | FTW_PHYS));
}

/// Returns why so many bytes can not be had in that directory's memory.
std::error_code check_room(const fs::path& within, std::uint64_t room, std::string& what) {
  struct ::statfs about = {};
  if (::statfs(within.c_str(), &about) != 0) {
    const int number = errno;
    what += " (" + std::generic_category().message(number) + ")";
    return store_error(number);
  }
  if (static_cast<std::uint32_t>(about.f_type) != TMPFS_MAGIC) {
    what += ", which is no file system in memory (tmpfs)";
    return errc::not_supported;
  }
  if (about.f_blocks == 0) return {};  // without a limit of its own
  const std::uint64_t free =
      static_cast<std::uint64_t>(about.f_bavail) * static_cast<std::uint64_t>(about.f_bsize);
  if (free >= room) return {};
  what += ": " + std::to_string(free) + " bytes are free there, and the quota is " +
          std::to_string(room);
  return errc::no_space;
}

}  // namespace

std::unique_ptr<memory_directory> memory_directory::make(const fs::path& within, std::uint64_t room,
                                                         std::string& what, std::error_code& ec) {
  what = "making a store in memory, in \"" + within.string() + "\"";
  const std::string begin = "ucxio-store-" + std::to_string(::geteuid()) + '-';
  if (!(ec = check_room(within, 0, what))) sweep(within, begin);
  if (!ec) ec = check_room(within, room, what);
  if (ec) return nullptr;
  constexpr int most_attempts = 64;  // somebody sweeps before we have the lock
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    std::string name = (within / (begin + "XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr) {  // with mode 0700
      const int number = errno;
      what += " (" + std::generic_category().message(number) + ")";
      ec = store_error(number);
      return nullptr;
    }
    owned_descriptor held = lock(name);
    if (held) {
      return std::unique_ptr<memory_directory>(new memory_directory(name, std::move(held)));
    }
    if (errno == EMFILE || errno == ENFILE) {
      ec = errc::too_many_files;
      ::rmdir(name.c_str());
      return nullptr;
    }
  }
  ec = errc::busy;
  return nullptr;
}

/// Returns the lock of a directory that nobody uses, and that is still there; nothing, with errno,
/// otherwise.
owned_descriptor memory_directory::lock(const fs::path& path) noexcept {
  owned_descriptor held(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!held || ::flock(held.get(), LOCK_EX | LOCK_NB) != 0) return {};
  struct ::stat own = {};
  struct ::stat named = {};
  if (::fstat(held.get(), &own) != 0 || ::lstat(path.c_str(), &named) != 0) return {};
  errno = ENOENT;
  const bool is_it = own.st_dev == named.st_dev && own.st_ino == named.st_ino;
  return is_it && own.st_uid == ::geteuid() ? std::move(held) : owned_descriptor();
}

/// Removes what servers of this user have left. What can not be removed stays: the next one tries.
void memory_directory::sweep(const fs::path& within, const std::string& begin) {
  each_entry(within.c_str(), [&](std::string_view name) {
    if (!name.starts_with(begin)) return;
    const fs::path left = within / name;
    const owned_descriptor held = lock(left);
    if (held) remove_tree(left);
  });
}

memory_directory::~memory_directory() {
  if (owner_ != ::getpid()) return;
  remove_tree(path_);
}

}  // namespace ucx::detail
