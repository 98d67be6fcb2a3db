// A directory in the machine's memory, which is gone with its owner.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "base/result.hpp"

namespace ucx::detail {

/// Only this user can look into it. A lock, which the kernel releases with the process, tells
/// directories in use from those that a killed process has left.
class memory_directory {
 public:
  /// Makes one in `within`, and removes what was left there. Errors: no_such_name,
  /// permission_denied, not_supported (`within` is on a disk, or not on this machine), no_space
  /// (less than `room` bytes are free there), too_many_files.
  static result<std::unique_ptr<memory_directory>> make(const std::filesystem::path& within,
                                                        std::uint64_t room);
  memory_directory(const memory_directory&) = delete;
  memory_directory& operator=(const memory_directory&) = delete;
  /// Removes it, with all that is in it; a child of fork(), which has a copy of this, does not.
  /// Takes as long as the removal of so many files.
  ~memory_directory();

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  memory_directory(std::filesystem::path path, owned_descriptor lock) noexcept
      : path_(std::move(path)), lock_(std::move(lock)) {}
  static owned_descriptor lock(const std::filesystem::path& path) noexcept;
  static void sweep(const std::filesystem::path& within, const std::string& begin);

  const ::pid_t owner_ = ::getpid();
  const std::filesystem::path path_;
  owned_descriptor lock_;
};

}  // namespace ucx::detail
