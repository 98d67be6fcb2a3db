// Memory for secrets: outside core dumps, never in swap where the system allows that, and wiped.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace ucx::detail {

/// It has whole pages. Locking is tried; a limit (`ulimit -l`) is no error.
class locked_memory {
 public:
  locked_memory() noexcept = default;
  /// Throws std::bad_alloc.
  explicit locked_memory(std::size_t size);
  locked_memory(locked_memory&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  locked_memory& operator=(locked_memory&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~locked_memory();

  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// Overwrites what the compiler may think is used no more.
void wipe(std::span<std::byte> bytes) noexcept;

}  // namespace ucx::detail
