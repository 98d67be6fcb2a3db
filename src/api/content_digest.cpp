#include "ucx/content_digest.hpp"

#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL
#endif
#include <xxhash.h>

#include <array>
#include <string_view>

namespace ucx {
namespace {

content_digest digest_from(const XXH128_hash_t& hash) noexcept {
  return {.high = hash.high64, .low = hash.low64};
}

}  // namespace

content_digest digest_of(std::span<const std::byte> bytes) noexcept {
  return digest_from(XXH3_128bits(bytes.data(), bytes.size()));
}

std::string to_string(const content_digest& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint64_t half : {digest.high, digest.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) text += digits[(half >> shift) & 0xfU];
  }
  return text;
}

struct content_hasher::state {
  XXH3_state_t hash;
};

content_hasher::content_hasher() : state_(std::make_unique<state>()) {
  XXH3_128bits_reset(&state_->hash);
}
content_hasher::content_hasher(content_hasher&& other) noexcept = default;
content_hasher& content_hasher::operator=(content_hasher&& other) noexcept = default;
content_hasher::~content_hasher() = default;

void content_hasher::update(std::span<const std::byte> bytes) noexcept {
  XXH3_128bits_update(&state_->hash, bytes.data(), bytes.size());
}

content_digest content_hasher::digest() const noexcept {
  return digest_from(XXH3_128bits_digest(&state_->hash));
}

}  // namespace ucx
