// Where the pretended devices have their memory.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace ucx::test {

constexpr std::size_t page_size = 4096;
/// What is mapped into reservations is in whole ones of these.
constexpr std::size_t granularity = std::size_t{2} << 20U;

// CUmemAccess_flags.
constexpr unsigned access_read = 1;
constexpr unsigned access_both = 3;

constexpr std::size_t whole_pages(std::size_t size) noexcept {
  return (size + page_size - 1) / page_size * page_size;
}

/// Returns addresses that nobody can touch, and that nothing else gets; 0 where there are none.
inline std::uint64_t reserve(std::size_t size) noexcept {
  void* const made = ::mmap(nullptr, whole_pages(size), PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return made == MAP_FAILED ? 0 : reinterpret_cast<std::uintptr_t>(made);
}

}  // namespace ucx::test
