#include "os/locked_memory.hpp"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace ucx::detail {

locked_memory::locked_memory(std::size_t size) {
  if (size == 0) return;
  void* const made =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (made == MAP_FAILED) throw std::bad_alloc();
  bytes_ = {static_cast<std::byte*>(made), size};
  ::madvise(made, size, MADV_DONTDUMP);
  [[maybe_unused]] const int locked = ::mlock(made, size);
}

locked_memory::~locked_memory() {
  if (bytes_.empty()) return;
  wipe(bytes_);
  ::munmap(bytes_.data(), bytes_.size());
}

void wipe(std::span<std::byte> bytes) noexcept { ::explicit_bzero(bytes.data(), bytes.size()); }

}  // namespace ucx::detail
