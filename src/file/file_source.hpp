// A file, as its owner reads it for peers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <span>
#include <system_error>

#include "base/result.hpp"
#include "file/file_facts.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

/// Shared by a region and by reads that outlast it. Threads: sharing one object is safe.
class file_source {
 public:
  file_source() noexcept = default;
  file_source(const file_source&) = delete;
  file_source& operator=(const file_source&) = delete;
  virtual ~file_source() = default;

  /// Reads what can be had without waiting for a disk, from the beginning of `into` on, and returns
  /// how many bytes that was. Fewer than asked for say nothing about the rest.
  virtual std::size_t read_now(std::uint64_t offset, std::span<std::byte> into) noexcept = 0;
  /// Fills `into`, for as long as the disk takes.
  /// Errors: content_changed (the file ends before), io_error.
  virtual std::error_code read(std::uint64_t offset, std::span<std::byte> into) noexcept = 0;

  /// Returns what the file is by now, for as long as the disk takes. Errors: io_error,
  /// not_supported.
  virtual result<file_facts> facts() const noexcept { return failure{errc::not_supported}; }
  /// Returns what was found of the file otherwise, as `facts` would tell it.
  virtual file_facts settled(const file_facts& found) const noexcept { return found; }
  /// Returns the system's descriptor of the file, open for reading as long as this is; or -1.
  virtual int descriptor() const noexcept { return -1; }
};

/// A regular file of the system. Its bytes are copied out by system calls and never mapped. A
/// process that reads a mapping of a truncated file gets a signal instead of an error.
class open_file final : public file_source {
 public:
  /// Opens the file for reading. Errors: no_such_name, permission_denied, not_supported (it is not
  /// a regular file), too_many_files, io_error; the text says which file.
  static result<std::shared_ptr<open_file>> open(const std::filesystem::path& path);
  /// Reads a descriptor that somebody else closes, after this.
  static std::shared_ptr<open_file> adopt(int descriptor);
  ~open_file() override;

  /// Returns the size that the file had when it was opened.
  std::uint64_t size() const noexcept { return opened_.size; }

  std::size_t read_now(std::uint64_t offset, std::span<std::byte> into) noexcept override;
  std::error_code read(std::uint64_t offset, std::span<std::byte> into) noexcept override;
  result<file_facts> facts() const noexcept override;
  file_facts settled(const file_facts& found) const noexcept override;
  int descriptor() const noexcept override { return descriptor_; }

 private:
  explicit open_file(int descriptor) noexcept : descriptor_(descriptor) {}

  int descriptor_;
  bool adopted_ = false;
  file_facts opened_ = {};  // as it was then
  mutable std::mutex settled_mutex_;
  mutable file_facts settled_ = {};           // as it was last, but for names that it lost
  std::atomic<bool> may_wait_always_{false};  // the file system can not read without waiting
};

}  // namespace ucx::detail
