#include "ucp/packed_key.hpp"

#include <ucs/memory/memory_type.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

namespace ucx::detail {
namespace {

constexpr std::byte host_memory{UCS_MEMORY_TYPE_HOST};
constexpr int most_domains = 32;

/// Returns the map of domains. REQUIRES: the key is longer.
std::uint64_t domains_of(std::span<const std::byte> key) noexcept {
  std::uint64_t domains = 0;
  std::memcpy(&domains, key.data(), sizeof domains);  // in the byte order of both machines
  return domains;
}

}  // namespace

bool is_packed_key(std::span<const std::byte> key) noexcept {
  constexpr std::size_t head = sizeof(std::uint64_t);
  if (key.size() <= head) return false;
  if (std::to_integer<unsigned>(key[head]) >= unsigned{UCS_MEMORY_TYPE_LAST}) return false;
  int left = std::popcount(domains_of(key));
  for (key = key.subspan(head + 1); left > 0; --left) {
    if (key.empty()) return false;
    const auto size = std::to_integer<std::size_t>(key.front());
    if (size >= key.size()) return false;
    key = key.subspan(1 + size);
  }
  return true;  // what follows are distances of devices, to a byte that is `padded_key::end`
}

bool is_key_of_domains(std::span<const std::byte> key) noexcept {
  if (!is_packed_key(key) || key[sizeof(std::uint64_t)] != host_memory) return false;
  const int domains = std::popcount(domains_of(key));
  return domains > 0 && domains <= most_domains;
}

padded_key::padded_key(std::span<const std::byte> key) noexcept
    : is_key_(key.size() <= longest && is_packed_key(key)) {
  if (is_key_) std::fill_n(std::copy(key.begin(), key.end(), bytes_.begin()), padding, end);
}

}  // namespace ucx::detail
