// The file that a user's tokens are in: docs/reference/tool.md, "Tokens".
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "carrier/token_text.hpp"
#include "os/locked_memory.hpp"

namespace ucx::detail {

/// The name of the token that servers of this user accept, and clients of this user have for them.
/// Other tokens that are accepted were given to clients, who could play the server by theirs.
inline constexpr std::string_view own_token_name = "own";

/// `accept`: servers of this user take it. `use`: it is for the server that `name` says, a host or
/// "host:port". A server takes no token that is to be used. So a client that uses such a
/// one, and is led back to a server of the same user, is refused (RFC 9257, "Selfie").
struct token_entry {
  bool is_own() const noexcept { return is_accepted && name == own_token_name; }

  bool is_accepted = true;
  std::string name;
};

struct token_list {
  std::vector<token_entry> entries;
  locked_memory secrets;  ///< Of `token_size` each, in the order of `entries`.

  std::span<const std::byte, token_size> secret(std::size_t number) const noexcept {
    return std::span<const std::byte>(secrets.bytes())
        .subspan(number * token_size)
        .first<token_size>();
  }
};

/// Returns `$XDG_CONFIG_HOME/ucxio/tokens`, else `~/.config/ucxio/tokens`; empty without a home.
std::filesystem::path own_token_file();

/// The variable whose value is a token, and counts instead of that file. Returns null where it is
/// not set, or empty.
inline constexpr const char* token_variable = "UCXIO_TOKEN";
const char* token_of_environment() noexcept;

/// Reads a file, or a descriptor (/dev/fd/N).
/// Errors: no_such_name (it is not there), not_secure (others than its owner may read or write it,
/// or the owner is another user), bad_configuration (a line is no token's; the text has its
/// number), io_error and the system's.
result<token_list> read_tokens(const std::filesystem::path& file);

/// Adds a line. Makes the file, where it is not there, and its folder.
/// Errors: those of `read_tokens`, bad_name, already_exists (two of that kind and name are there).
result<void> add_token(const std::filesystem::path& file, const token_entry& entry,
                       std::span<const std::byte, token_size> secret);

/// Makes the user's own token, where the file has none. Two processes that do so at a time make
/// one. Returns whether it made one.
/// Errors: those of `add_token`.
result<bool> ensure_own_token(const std::filesystem::path& file);

/// Draws a token. Errors: io_error (the system gives no random bytes).
result<void> draw_token(std::span<std::byte, token_size> secret);

/// Removes the lines of a name, or the first of them. Returns how many there were.
result<std::size_t> remove_tokens(const std::filesystem::path& file, std::string_view name,
                                  bool oldest_only);

}  // namespace ucx::detail
