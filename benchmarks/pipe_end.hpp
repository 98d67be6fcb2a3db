// One end of a pipe between two processes of a benchmark: bytes with their number before them.
#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace ucx::benchmarks {

/// Owns its descriptor. Errors: std::runtime_error where the other end is closed.
class pipe_end {
 public:
  explicit pipe_end(int descriptor) : descriptor_(descriptor) {}
  pipe_end(const pipe_end&) = delete;
  pipe_end& operator=(const pipe_end&) = delete;
  ~pipe_end() { ::close(descriptor_); }

  void write(std::span<const std::byte> bytes) {
    const std::uint64_t size = bytes.size();
    write_all(std::as_bytes(std::span(&size, 1)));
    write_all(bytes);
  }
  std::vector<std::byte> read() {
    std::uint64_t size = 0;
    read_all(std::as_writable_bytes(std::span(&size, 1)));
    std::vector<std::byte> bytes(size);
    read_all(bytes);
    return bytes;
  }
  void write_number(std::uint64_t number) { write_all(std::as_bytes(std::span(&number, 1))); }
  std::uint64_t read_number() {
    std::uint64_t number = 0;
    read_all(std::as_writable_bytes(std::span(&number, 1)));
    return number;
  }

 private:
  void write_all(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ::ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count <= 0) throw std::runtime_error("the reader is gone");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }
  void read_all(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const ::ssize_t count = ::read(descriptor_, bytes.data(), bytes.size());
      if (count <= 0) throw std::runtime_error("the writer is gone");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
  }

  int descriptor_;
};

}  // namespace ucx::benchmarks
