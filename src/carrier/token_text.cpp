#include "carrier/token_text.hpp"

#include <algorithm>
#include <cstdint>

#include "os/locked_memory.hpp"
#include "wire/wire.hpp"

namespace ucx::detail {
namespace {

/// RFC 4648's alphabet, in lower case.
constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz234567";
constexpr std::string_view code_prefix = "ucxi1-";
static_assert(code_prefix.size() == token_prefix.size());
constexpr std::size_t sum_size = sizeof(std::uint64_t);

using token_bytes = std::array<std::byte, token_size + sum_size>;

/// The checksum covers the version, too.
std::uint64_t sum_of(std::span<const std::byte, token_size> secret) noexcept {
  std::array<std::byte, token_prefix.size() + token_size> covered = {};
  std::transform(token_prefix.begin(), token_prefix.end(), covered.begin(),
                 [](char c) { return static_cast<std::byte>(c); });
  std::copy(secret.begin(), secret.end(), covered.begin() + token_prefix.size());
  const std::uint64_t sum = checksum(covered);
  wipe(covered);
  return sum;
}

/// Groups of 5 bytes are 8 letters.
bool read_letters(std::string_view text, token_bytes& into) noexcept {
  std::size_t at = 0;
  for (std::size_t group = 0; group < text.size(); group += 8) {
    std::uint64_t bits = 0;
    for (const char c : text.substr(group, 8)) {
      const std::size_t found = letters.find(c);
      if (found == std::string_view::npos) return false;
      bits = bits << 5U | found;
    }
    for (unsigned shift = 40; shift != 0; shift -= 8) {
      into[at++] = static_cast<std::byte>(bits >> (shift - 8) & 0xffU);
    }
  }
  return true;
}

}  // namespace

void write_token(std::span<const std::byte, token_size> secret,
                 std::span<char, token_text_size> text) noexcept {
  token_bytes bytes = {};
  std::copy(secret.begin(), secret.end(), bytes.begin());
  put_at(std::span(bytes), token_size, sum_of(secret));
  char* to = std::copy(token_prefix.begin(), token_prefix.end(), text.data());
  for (std::size_t group = 0; group < bytes.size(); group += 5) {
    std::uint64_t bits = 0;
    for (const std::byte each : std::span(bytes).subspan(group, 5)) {
      bits = bits << 8U | static_cast<std::uint64_t>(each);
    }
    for (unsigned shift = 40; shift != 0; shift -= 5) *to++ = letters[bits >> (shift - 5) & 31U];
  }
  wipe(bytes);
}

token_verdict read_token(std::string_view text, std::span<std::byte, token_size> secret) noexcept {
  wipe(secret);
  if (!text.starts_with(token_prefix)) {
    const std::size_t digits = text.find_first_not_of("0123456789", 4);
    const bool has_version = text.starts_with("ucxt") && digits != std::string_view::npos &&
                             digits > 4 && text[digits] == '-';
    return has_version ? token_verdict::other_version : token_verdict::no_token;
  }
  if (text.size() != token_text_size) return token_verdict::damaged;
  token_bytes bytes = {};
  token_verdict found = token_verdict::damaged;
  if (read_letters(text.substr(token_prefix.size()), bytes)) {
    const auto begin = std::span<const std::byte>(bytes).first<token_size>();
    if (take_at<std::uint64_t>(std::span<const std::byte>(bytes), token_size) == sum_of(begin)) {
      std::copy(begin.begin(), begin.end(), secret.begin());
      found = token_verdict::intact;
    }
  }
  wipe(bytes);
  return found;
}

std::string code_text(std::span<const std::byte, token_size> code) {
  std::string text(token_text_size, ' ');
  write_token(code, std::span<char, token_text_size>(text));
  std::copy(code_prefix.begin(), code_prefix.end(), text.begin());
  return text;
}

token_verdict read_code(std::string_view text, std::span<std::byte, token_size> code) {
  wipe(code);
  if (!text.starts_with(code_prefix)) return token_verdict::no_token;
  std::string as_token(text);
  std::copy(token_prefix.begin(), token_prefix.end(), as_token.begin());
  const token_verdict found = read_token(as_token, code);
  wipe(std::as_writable_bytes(std::span(as_token)));
  return found;
}

std::string_view words_of(token_verdict verdict) noexcept {
  switch (verdict) {
    case token_verdict::intact:
      return "is intact";
    case token_verdict::other_version:
      return "is of a version that this ucxio does not know";
    case token_verdict::damaged:
      return "is damaged: a letter is wrong, missing or too many";
    case token_verdict::no_token:
      break;
  }
  return "is no token: one begins with \"ucxt1-\"";
}

std::string_view complaint_about_token_name(std::string_view name) noexcept {
  if (name.empty()) return "is missing";
  if (name.size() > longest_token_name) return "is longer than 64 letters";
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-@:[]%").find(c) != std::string_view::npos;
  });
  return is_plain ? "" : "has other letters than a-z, A-Z, 0-9 and ._-@:[]%";
}

}  // namespace ucx::detail
