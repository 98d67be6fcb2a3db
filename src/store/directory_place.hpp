// Where an open directory is by now: whether anybody finds it still.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>

#include "base/owned_descriptor.hpp"

namespace ucx::detail {

/// An open directory stays the same when its path changes. The path may come to lead to another
/// one, as a changed symbolic link does, or to nothing, where the process has another root
/// meanwhile. Files written into the directory are still found. They are not if it was removed, its
/// file system was unmounted, or something was mounted over it.
class directory_place {
 public:
  directory_place() noexcept = default;
  /// Of a directory that is open as `directory`, and was opened by `path`.
  directory_place(int directory, const std::filesystem::path& path);

  /// Returns whether no path leads to it any more; false where that can not be told.
  bool is_gone(int directory) const noexcept;

 private:
  /// The end of the way up.
  struct top {
    ::dev_t device = 0;
    ::ino_t inode = 0;
    std::uint64_t mount = 0;  // 0: the system does not tell
    bool is_known = false;

    bool operator==(const top&) const noexcept = default;
  };
  static top look_at(int directory) noexcept;
  static top top_above(int directory, const top& known) noexcept;

  std::filesystem::path path_;
  top top_;
};

}  // namespace ucx::detail
