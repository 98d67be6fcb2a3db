#include "wire/digest.hpp"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <array>

#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

/// The digest also covers the request, the region and the place of the bytes. So bytes of others
/// count as damaged, and so does an answer to a question that arrived damaged.
XXH128_hash_t digest_of(const frame& said, const frame& asked,
                        std::span<const std::byte> payload) noexcept {
  std::array<std::byte, 40> whose;
  put_at(whose, 0, asked.request);
  put_at(whose, 8, asked.region);
  put_at(whose, 16, asked.generation);
  put_at(whose, 24, asked.offset);
  put_at(whose, 32, said.offset);
  return XXH3_128bits_withSeed(payload.data(), payload.size(), checksum(whose));
}

}  // namespace

void seal(frame& said, const frame& asked, std::span<const std::byte> payload) noexcept {
  const XXH128_hash_t digest = digest_of(said, asked, payload);
  said.incarnation = digest.high64;
  said.generation = digest.low64;
}

seal_state check_seal(const frame& said, const frame& asked,
                      std::span<const std::byte> payload) noexcept {
  if (said.incarnation == 0 && said.generation == 0) return seal_state::none;
  const XXH128_hash_t digest = digest_of(said, asked, payload);
  const bool same = said.incarnation == digest.high64 && said.generation == digest.low64;
  return same ? seal_state::intact : seal_state::damaged;
}

}  // namespace ucx::detail
