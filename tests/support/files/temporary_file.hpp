// A file that exists for the time of a test.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "support/bytes/pattern.hpp"

namespace ucx::test {

/// In the directory for temporary files, and gone with the object.
class temporary_file {
 public:
  /// Holds `size` bytes of pattern 0.
  explicit temporary_file(std::size_t size = 0) {
    std::string name = (std::filesystem::temp_directory_path() / "ucxio-test-XXXXXX").string();
    descriptor_ = ::mkstemp(name.data());
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), name);
    path_ = name;
    write(0, pattern(size));
  }
  ~temporary_file() {
    ::close(descriptor_);
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

  void write(std::uint64_t offset, std::span<const std::byte> bytes) const {
    while (!bytes.empty()) {
      const ssize_t count =
          ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (count < 0) throw std::system_error(errno, std::generic_category(), path_.string());
      bytes = bytes.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
  }
  /// Cuts it off, or lets it grow by zeros that take no space.
  void resize(std::uint64_t size) const { std::filesystem::resize_file(path_, size); }
  /// Asks the system to forget what it has in memory; the next read goes to the disk.
  void drop_cache() const {
    ::fdatasync(descriptor_);
    ::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  }

 private:
  int descriptor_ = -1;
  std::filesystem::path path_;
};

}  // namespace ucx::test
