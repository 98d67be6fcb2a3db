#include "carrier/meeting_book.hpp"

#include <string.h>

#include <algorithm>
#include <string_view>

#include "carrier/tls_keys.hpp"

namespace ucx::detail {
namespace {

constexpr std::string_view meeting_key_label = "ucxs/1 psk of a meeting";
constexpr std::string_view meeting_identity_label = "ucxs/1 identity of a meeting";

thread_local meeting_scope* innermost_meeting = nullptr;

}  // namespace

meeting_secret::~meeting_secret() { ::explicit_bzero(secret.data(), secret.size()); }

std::optional<meeting_secret> secret_of(std::span<const std::byte> key) noexcept {
  meeting_secret made;
  if (!derive(key, meeting_key_label, made.secret)) return std::nullopt;
  if (!derive(key, meeting_identity_label, made.identity)) return std::nullopt;
  return made;
}

void meeting_book::expect(const meeting_secret& key, clock::time_point until) {
  const std::lock_guard guard(mutex_);
  std::erase_if(expected_, [now = clock::now()](const auto& each) { return each.until <= now; });
  expected_.push_back({key, until});
}

std::optional<meeting_secret> meeting_book::expected(
    std::span<const std::byte> identity) const noexcept {
  const std::lock_guard guard(mutex_);
  const auto found = std::ranges::find_if(expected_, [&](const expectation& each) {
    return std::ranges::equal(each.key.identity, identity);
  });
  if (found == expected_.end() || found->until <= clock::now()) return std::nullopt;
  return found->key;
}

bool meeting_book::spend(std::span<const std::byte> identity) noexcept {
  const std::lock_guard guard(mutex_);
  return std::erase_if(expected_, [&](const expectation& each) {
           return std::ranges::equal(each.key.identity, identity);
         }) > 0;
}

void meeting_book::clear() noexcept {
  const std::lock_guard guard(mutex_);
  expected_.clear();
}

meeting_scope::meeting_scope(meeting_part given) noexcept
    : given_(std::move(given)), outer_(std::exchange(innermost_meeting, this)) {}

meeting_scope::~meeting_scope() { innermost_meeting = outer_; }

std::shared_ptr<meeting_book> meeting_scope::take_book() noexcept {
  if (innermost_meeting == nullptr) return nullptr;
  return std::exchange(innermost_meeting->given_.expects, nullptr);
}

std::optional<meeting_secret> meeting_scope::take_key() noexcept {
  if (innermost_meeting == nullptr) return std::nullopt;
  return std::exchange(innermost_meeting->given_.shows, std::nullopt);
}

}  // namespace ucx::detail
