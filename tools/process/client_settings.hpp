// The settings of every command that connects to a server.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "output/cli_forward.hpp"
#include "ucx/client.hpp"
#include "ucx/context.hpp"
#include "ucx/url.hpp"

namespace ucx::tool {

struct client_settings {
  /// For connecting, and for each operation; nothing means the library's defaults.
  std::optional<double> timeout_seconds;
  /// Where the tokens of ucxs:// are; empty: `UCXIO_TOKEN`, or the user's own file.
  std::string token_file;
  /// The files of certificates of ucxs://; empty: those of the environment.
  certificate_files certificates;
  /// Users, by name or number, whose servers are trusted over a Unix socket.
  std::vector<std::string> peer_users;
  /// Connecting may end the process where it does not end otherwise (`connect_watch`). Never of a
  /// server, whose other clients would go with it.
  bool may_end_process = false;

  /// Returns the options of a client. Errors: failure with exit_code::usage.
  client_options options() const;
  /// Returns a client of the server of `any`. Errors: those of client's constructor; failure with
  /// exit_code::usage, and with exit_code::no_connection where the server has no room for it.
  client connect(const url& any) const;
};

/// Adds `--peer-user` to a command. `users`: where it leaves what was said.
void add_peer_users(CLI::App& command, std::vector<std::string>& users, const char* text);
/// Returns the numbers of users, who are said by number or name. Errors: failure with
/// exit_code::usage.
std::vector<std::uint32_t> numbers_of_users(const std::vector<std::string>& users);

/// Adds `--cert`, `--key`, `--ca` and `--crl` to a command. Returns them. `has_variables`: where
/// they are not said, variables of the environment name the files.
std::vector<CLI::Option*> add_certificate_options(CLI::App& command, certificate_files& files,
                                                  bool has_variables);

/// Adds `--timeout`, `--token-file`, those of certificates, `--peer-user` and `--no-core` to a
/// command.
void add_client_options(CLI::App& command, client_settings& settings);

/// Returns `text` as the URL of a published name. Errors: bad_url; failure with exit_code::usage.
url url_with_name(const std::string& text);

}  // namespace ucx::tool
