// System calls on an open file of this machine, with errors that say which.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ucx/content_digest.hpp"

namespace ucx::tool {

/// Ends with a failure: "PATH: DOING: what the system says".
[[noreturn]] void fail_at(const std::filesystem::path& path, const char* doing, int error);

/// A descriptor that is closed with it. Errors of everything: failure.
class local_file {
 public:
  local_file() noexcept = default;
  local_file(std::filesystem::path path, int flags, ::mode_t mode = 0666);
  local_file(local_file&& other) noexcept;
  local_file& operator=(local_file&& other) noexcept;
  ~local_file();

  /// Opens it; returns nothing where the system refuses that with `refusal`, a value of errno.
  static std::optional<local_file> open_unless(int refusal, const std::filesystem::path& path,
                                               int flags);

  const std::filesystem::path& path() const noexcept { return path_; }
  int descriptor() const noexcept { return descriptor_; }
  struct ::stat status() const;

  /// Reads as much of `into` as there is; fewer bytes only at the end.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> into) const;
  void write_at(std::uint64_t offset, std::span<const std::byte> from) const;
  /// Writes where it is, for what has no offsets.
  void append(std::span<const std::byte> from) const;
  void resize(std::uint64_t size) const;
  /// Returns the hash of each `chunk` of what is there. Errors: content_changed (it is shorter).
  std::vector<content_digest> digests(const digest_range& wanted) const;
  /// Has told what some file systems, such as NFS, tell only when a file is closed: that they are
  /// full. It stays open, and locked.
  void settle() const;
  /// Closes it; errors as `settle()`.
  void close();

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace ucx::tool
