#include "os/memory_rights.hpp"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>

namespace ucx::detail {
namespace {

std::string at(std::uint64_t address) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%" PRIx64, address);
  return text;
}

}  // namespace

std::string why_unusable(std::span<const std::byte> bytes, memory_use wanted, const char* list) {
  std::uint64_t next = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uint64_t past = next + bytes.size();
  std::ifstream mappings(list);
  if (!mappings) return std::string("the process's mappings (") + list + ") can not be read";
  std::string line;
  // "55d4e3a00000-55d4e3a02000 r--p ...", in the order of addresses
  while (next < past && std::getline(mappings, line)) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, rights) != 3)
      continue;
    if (end <= next) continue;
    if (begin > next) break;
    if (wanted.reads && rights[0] != 'r') return "the process may not read at " + at(next);
    if (wanted.writes && rights[1] != 'w') return "the process may not write at " + at(next);
    next = end;
  }
  return next < past ? "nothing is mapped at " + at(next) : std::string();
}

}  // namespace ucx::detail
