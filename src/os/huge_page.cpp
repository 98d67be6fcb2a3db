#include "os/huge_page.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace ucx::detail {
namespace {

/// The lines of a mapping that tell of huge pages: of private memory, of files in memory, of files.
bool tells_of_huge_pages(std::string_view line) noexcept {
  return line.starts_with("AnonHugePages:") || line.starts_with("ShmemPmdMapped:") ||
         line.starts_with("FilePmdMapped:") || line.starts_with("Private_Hugetlb:") ||
         line.starts_with("Shared_Hugetlb:");
}

}  // namespace

void advise_huge_pages(void* memory, std::size_t size) noexcept {
  if (size >= huge_page) ::madvise(memory, size, MADV_HUGEPAGE);
}

aligned_memory allocate_zeroed(std::size_t size) {
  const auto alignment = std::align_val_t{alignment_of(size, alignof(std::max_align_t))};
  aligned_memory made(
      static_cast<std::byte*>(::operator new(std::max<std::size_t>(size, 1), alignment)),
      aligned_free{alignment});
  // The first touch decides which pages there are.
  advise_huge_pages(made.get(), size);
  std::memset(made.get(), 0, size);
  return made;
}

void* map_aligned(std::size_t size, int protection, int file) noexcept {
  if (size < huge_page) return ::mmap(nullptr, size, protection, MAP_SHARED, file, 0);
  // Addresses to choose from; what the mapping does not take goes back.
  const std::size_t reserved = size + huge_page;
  void* const room =
      ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) return ::mmap(nullptr, size, protection, MAP_SHARED, file, 0);
  auto* const begin = static_cast<std::byte*>(room);
  const std::size_t ahead =
      (huge_page - reinterpret_cast<std::uintptr_t>(begin) % huge_page) % huge_page;
  void* const mapped = ::mmap(begin + ahead, size, protection, MAP_SHARED | MAP_FIXED, file, 0);
  if (mapped == MAP_FAILED) {
    const int why = errno;
    ::munmap(room, reserved);
    errno = why;
    return MAP_FAILED;
  }
  if (ahead > 0) ::munmap(begin, ahead);
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t taken = ahead + (size + page - 1) / page * page;
  if (taken < reserved) ::munmap(begin + taken, reserved - taken);
  advise_huge_pages(mapped, size);
  return mapped;
}

std::optional<std::uint64_t> huge_bytes(const std::string& process, std::uint64_t address,
                                        std::uint64_t size) {
  std::FILE* const list = std::fopen(("/proc/" + process + "/smaps").c_str(), "re");
  if (list == nullptr) return std::nullopt;
  std::uint64_t sum = 0;
  bool found = false;
  bool inside = false;
  char line[512];
  while (std::fgets(line, sizeof line, list) != nullptr) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t kilobytes = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &begin, &end) == 2) {
      inside = begin < address + size && end > address;
      found = found || inside;
    } else if (inside && tells_of_huge_pages(line) &&
               std::sscanf(std::strchr(line, ':') + 1, "%" SCNu64, &kilobytes) == 1) {
      sum += kilobytes * 1024;
    }
  }
  std::fclose(list);
  if (!found) return std::nullopt;
  return std::min(sum, size);
}

}  // namespace ucx::detail
