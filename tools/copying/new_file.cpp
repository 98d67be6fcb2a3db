#include "copying/new_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

namespace ucx::tool {
namespace {

/// Returns what new files may not have. Asked for without changing it, because other threads make
/// files, too; 0, where the system does not tell, leaves it to the system.
::mode_t creation_mask() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Umask:")) {
      return static_cast<::mode_t>(std::stoul(line.substr(6), nullptr, 8));
    }
  }
  return 0;
}

bool write_all(int file, std::span<const std::byte> bytes) noexcept {
  if (bytes.empty()) return true;
  return ::write(file, bytes.data(), bytes.size()) == static_cast<::ssize_t>(bytes.size());
}

/// Returns whether closing it would tell of no error: some file systems keep that until then.
bool settle(int file) noexcept {
  struct ::statfs about = {};
  if (::fstatfs(file, &about) == 0) {
    const auto type = static_cast<unsigned long>(about.f_type);  // NOLINT(google-runtime-int)
    const bool tells_at_once = type == EXT4_SUPER_MAGIC || type == XFS_SUPER_MAGIC ||
                               type == BTRFS_SUPER_MAGIC || type == TMPFS_MAGIC;
    if (tells_at_once) return true;
  }
  const int again = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
  return again >= 0 && (::close(again) == 0 || errno == EINTR);
}

/// By the descriptor that is a matter of rights, which are always the same; by its name in /proc it
/// takes twice as long.
bool give_name(int file, const char* path) noexcept {
  static std::atomic<bool> may_by_descriptor{true};
  if (may_by_descriptor.load(std::memory_order_relaxed)) {
    if (::linkat(file, "", AT_FDCWD, path, AT_EMPTY_PATH) == 0) return true;
    if (errno == EEXIST) return false;
    may_by_descriptor.store(false, std::memory_order_relaxed);
  }
  std::array<char, 32> descriptor{};
  std::snprintf(descriptor.data(), descriptor.size(), "/proc/self/fd/%d", file);
  return ::linkat(AT_FDCWD, descriptor.data(), AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace

bool write_new_file(const std::filesystem::path& path, std::span<const std::byte> bytes) noexcept {
  try {
    // Kernels before 6.0 forget it for unnamed files of some file systems.
    static const ::mode_t mode = 0666U & ~creation_mask();
    const std::filesystem::path parent = path.parent_path();
    const char* const directory = parent.empty() ? "." : parent.c_str();
    const int file = ::open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (file < 0) return false;
    const bool has_name = write_all(file, bytes) && settle(file) && give_name(file, path.c_str());
    ::close(file);
    return has_name;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace ucx::tool
