// Where an open directory is by now: whether anybody finds it still.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>

#include "base/owned_descriptor.hpp"

namespace ucx::detail {

/// An open directory stays the same whatever becomes of its path: that may lead to another one, as
/// a symbolic link does that was changed, or to nothing, where the process has another root
/// meanwhile. What is written into it is found nevertheless, unless it was removed, its file system
/// was unmounted, or something was mounted over it.
class directory_place {
 public:
  directory_place() noexcept = default;
  /// Of a directory that is open as `directory`, and was opened by `path`.
  directory_place(int directory, const std::filesystem::path& path);

  /// Returns whether nobody finds it any more. Where that can not be told it is not.
  bool is_gone(int directory) const noexcept;

 private:
  /// What is at the end of the way up.
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
