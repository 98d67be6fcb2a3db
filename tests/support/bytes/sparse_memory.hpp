// Memory of which only the pages exist that are touched.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

namespace ucx::test {

class sparse_memory {
 public:
  explicit sparse_memory(std::size_t size)
      : size_(size),
        data_(::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~sparse_memory() {
    if (usable()) ::munmap(data_, size_);
  }
  sparse_memory(const sparse_memory&) = delete;
  sparse_memory& operator=(const sparse_memory&) = delete;

  bool usable() const noexcept { return data_ != MAP_FAILED; }
  std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(data_), size_}; }

 private:
  std::size_t size_;
  void* data_;
};

/// Returns how much memory there is to be had now, with what the kernel would give back of files
/// that it remembers: a machine that has read much has little that is free.
inline std::uint64_t free_memory() {
  std::ifstream told("/proc/meminfo");
  for (std::string line; std::getline(told, line);) {
    constexpr std::string_view name = "MemAvailable:";
    if (line.starts_with(name)) return 1024 * std::stoull(line.substr(name.size()));
  }
  return static_cast<std::uint64_t>(::sysconf(_SC_AVPHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace ucx::test
