// Huge pages of the system's: their size, memory that is aligned for them, and who has some.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>

namespace ucx::detail {

/// From so many bytes on, memory of the library's is aligned for huge pages, and asks for them.
inline constexpr std::size_t huge_page = std::size_t{2} << 20U;

constexpr std::size_t alignment_of(std::size_t size, std::size_t usual) noexcept {
  return size >= huge_page ? huge_page : usual;
}

/// Asks for huge pages where the memory is large enough; that it gets none is no loss.
void advise_huge_pages(void* memory, std::size_t size) noexcept;

/// Gives back what `allocate_aligned` made.
struct aligned_free {
  std::align_val_t alignment;
  void operator()(std::byte* memory) const noexcept { ::operator delete(memory, alignment); }
};
using aligned_memory = std::unique_ptr<std::byte, aligned_free>;

/// Allocates zeroed bytes, aligned and advised. Throws std::bad_alloc.
aligned_memory allocate_zeroed(std::size_t size);

/// Maps `size` bytes of `file` at an address that huge pages of it can be at; MAP_FAILED, and
/// `errno`, where that fails.
void* map_aligned(std::size_t size, int protection, int file) noexcept;

/// Returns how many bytes are in huge pages, of the mappings of a process ("self", or its number)
/// that [address, address + size) touches. Returns `size` at most; nothing where the system does
/// not tell.
std::optional<std::uint64_t> huge_bytes(const std::string& process, std::uint64_t address,
                                        std::uint64_t size);

}  // namespace ucx::detail
