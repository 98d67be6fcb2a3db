// The text form of a token: docs/reference/wire-format.md, "Tokens".
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ucx::detail {

/// The secret that a client and a server share.
inline constexpr std::size_t token_size = 32;
inline constexpr std::string_view token_prefix = "ucxt1-";
/// The prefix, and 64 letters of 5 bits: the secret, and a checksum of 64 bits.
inline constexpr std::size_t token_text_size = token_prefix.size() + 64;

enum class token_verdict { intact, other_version, damaged, no_token };

/// Writes the text of a secret.
void write_token(std::span<const std::byte, token_size> secret,
                 std::span<char, token_text_size> text) noexcept;
/// Reads a text whole. `secret` is filled where it is intact, and else zeroed.
token_verdict read_token(std::string_view text, std::span<std::byte, token_size> secret) noexcept;

/// Returns the text of a code of one use, which is another one than that of a token.
std::string code_text(std::span<const std::byte, token_size> code);
/// Reads such a text.
token_verdict read_code(std::string_view text, std::span<std::byte, token_size> code);

/// Says what a verdict means: "is of another version of ucxio", ...
std::string_view words_of(token_verdict verdict) noexcept;

inline constexpr std::size_t longest_token_name = 64;

/// Returns what is wrong with a token's name; empty where nothing is.
std::string_view complaint_about_token_name(std::string_view name) noexcept;

}  // namespace ucx::detail
