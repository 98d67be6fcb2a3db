// The options of commands that serve: where their server listens, by what, and for whom.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "output/cli_forward.hpp"

namespace ucx::tool {

/// Means a socket that the library places. No path of a socket can be that.
inline constexpr const char* any_unix_place = "auto";

struct listening_options {
  std::optional<std::string> bind;
  bool insecure = false;
  bool by_ucx = false;
  bool by_socket = false;
  bool by_tls = false;
  std::string unix_place;  // the path of a socket, or `any_unix_place`
};

/// Adds `--bind`, `--insecure`, `--ucx`, `--socket`, `--tls` and `--unix`, whose values come to
/// `options`. Returns what was added.
std::vector<CLI::Option*> add_listening_options(CLI::App& command, listening_options& options);

/// Returns where the server listens, as the library's options say it. `peer_users`: the other users
/// that it lets in. `otherwise`: where it listens without a word.
/// Throws a `failure` (usage) for options that exclude each other.
std::string place_of(const listening_options& options, const std::vector<std::string>& peer_users,
                     const char* otherwise = "127.0.0.1:0");

/// Returns the transports that the server is restricted to; empty for the library's choice.
std::vector<std::string> transports_of(const listening_options& options);

/// Returns the note that the server at `url` serves this user alone, where the library has chosen
/// that; else nothing.
std::string_view note_of_no_tls(const listening_options& options, const std::string& url) noexcept;

}  // namespace ucx::tool
