// A long run of bytes that are the same few pages again and again.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <span>
#include <stdexcept>

namespace ucx::test {

/// What is written at one place shows at others: for transfers of which only the size matters.
class repeated_memory {
 public:
  explicit repeated_memory(std::size_t times) : size_(times * period) {
    file_ = ::memfd_create("repeated", MFD_CLOEXEC);
    if (file_ < 0 || ::ftruncate(file_, period) != 0) throw std::runtime_error("memfd_create");
    data_ = ::mmap(nullptr, size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) throw std::runtime_error("mmap");
    for (std::size_t at = 0; at < size_; at += period) {
      void* const place = static_cast<std::byte*>(data_) + at;
      if (::mmap(place, period, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_, 0) !=
          place) {
        throw std::runtime_error("mmap");
      }
    }
  }
  ~repeated_memory() {
    ::munmap(data_, size_);
    ::close(file_);
  }
  repeated_memory(const repeated_memory&) = delete;
  repeated_memory& operator=(const repeated_memory&) = delete;

  std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(data_), size_}; }

 private:
  static constexpr std::size_t period = std::size_t{16} << 20U;

  std::size_t size_;
  int file_ = -1;
  void* data_ = nullptr;
};

}  // namespace ucx::test
