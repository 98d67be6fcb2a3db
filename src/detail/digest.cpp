#include "detail/digest.hpp"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

namespace ucx::detail {
namespace {

/// The place is a part of it: a piece that is told to be somewhere else is damaged, too.
XXH128_hash_t digest_of(const frame& said, std::span<const std::byte> payload) noexcept {
  return XXH3_128bits_withSeed(payload.data(), payload.size(), said.offset);
}

}  // namespace

void seal(frame& said, std::span<const std::byte> payload) noexcept {
  const XXH128_hash_t digest = digest_of(said, payload);
  said.incarnation = digest.high64;
  said.generation = digest.low64;
}

seal_state check_seal(const frame& said, std::span<const std::byte> payload) noexcept {
  if (said.incarnation == 0 && said.generation == 0) return seal_state::none;
  const XXH128_hash_t digest = digest_of(said, payload);
  const bool same = said.incarnation == digest.high64 && said.generation == digest.low64;
  return same ? seal_state::intact : seal_state::damaged;
}

}  // namespace ucx::detail
