#include "ucp/packed_key.hpp"

#include <bit>
#include <cstdint>
#include <cstring>

namespace ucx::detail {
namespace {

constexpr std::byte host_memory{0};  // UCS_MEMORY_TYPE_HOST
constexpr int most_domains = 32;

}  // namespace

bool is_packed_key(std::span<const std::byte> key) noexcept {
  std::uint64_t domains = 0;
  if (key.size() <= sizeof domains) return false;
  std::memcpy(&domains, key.data(), sizeof domains);  // in the byte order of both machines
  if (domains == 0 || std::popcount(domains) > most_domains) return false;
  if (key[sizeof domains] != host_memory) return false;
  key = key.subspan(sizeof domains + 1);
  for (int left = std::popcount(domains); left > 0; --left) {
    if (key.empty()) return false;
    const auto size = std::to_integer<std::size_t>(key.front());
    if (size >= key.size()) return false;
    key = key.subspan(1 + size);
  }
  return true;  // what follows are distances of devices, to a byte that is `key_end`
}

}  // namespace ucx::detail
