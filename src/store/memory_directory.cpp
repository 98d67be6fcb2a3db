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
#include <system_error>
#include <utility>

#include "base/directory_entries.hpp"
#include "store/store_directory.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

namespace fs = std::filesystem;

/// Files that can not be removed stay. Uses the system's calls: those of std::filesystem end the
/// process where there is no memory for them.
void remove_tree(const fs::path& gone) noexcept {
  const auto remove_one = [](const char* each, const struct ::stat*, int, ::FTW*) {
    static_cast<void>(::remove(each));
    return 0;
  };
  constexpr int most_open = 16;
  static_cast<void>(::nftw(gone.c_str(), remove_one, most_open, FTW_DEPTH | FTW_PHYS));
}

/// Of a failed call of the system, with its words.
failure system_failure(const std::string& doing, int number) {
  return {store_error(number), doing + " (" + std::generic_category().message(number) + ")"};
}

/// Fails where so many bytes can not be had in that directory's memory.
result<void> check_room(const fs::path& within, std::uint64_t room, const std::string& doing) {
  struct ::statfs about = {};
  if (::statfs(within.c_str(), &about) != 0) return system_failure(doing, errno);
  if (static_cast<std::uint32_t>(about.f_type) != TMPFS_MAGIC) {
    return failure{errc::not_supported, doing + ", which is no file system in memory (tmpfs)"};
  }
  if (about.f_blocks == 0) return {};  // without a limit
  const std::uint64_t free =
      static_cast<std::uint64_t>(about.f_bavail) * static_cast<std::uint64_t>(about.f_bsize);
  if (free >= room) return {};
  return failure{errc::no_space, doing + ": " + std::to_string(free) +
                                     " bytes are free there, and the quota is " +
                                     std::to_string(room)};
}

}  // namespace

result<std::unique_ptr<memory_directory>> memory_directory::make(const fs::path& within,
                                                                 std::uint64_t room) {
  const std::string doing = "making a store in memory, in \"" + within.string() + "\"";
  const std::string begin = "ucxio-store-" + std::to_string(::geteuid()) + '-';
  if (const auto usable = check_room(within, 0, doing); !usable) return usable.why();
  sweep(within, begin);
  if (const auto enough = check_room(within, room, doing); !enough) return enough.why();
  constexpr int most_attempts = 64;  // somebody sweeps before we have the lock
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    std::string name = (within / (begin + "XXXXXX")).string();
    if (::mkdtemp(name.data()) == nullptr) return system_failure(doing, errno);  // with mode 0700
    owned_descriptor held = lock(name);
    if (held) {
      return std::unique_ptr<memory_directory>(new memory_directory(name, std::move(held)));
    }
    if (errno == EMFILE || errno == ENFILE) {
      ::rmdir(name.c_str());
      return failure{errc::too_many_files, doing};
    }
  }
  return failure{errc::busy, doing};
}

/// Returns the lock of a directory that no process uses, and that is still there; nothing, with
/// errno, otherwise.
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

/// Removes what servers of this user have left. Where that fails, the next server tries.
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
