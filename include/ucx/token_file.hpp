#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/error.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"

namespace ucx {

/// The tokens of a user, by which clients and servers of `ucxs://` know each other
/// (`docs/how-to/security.md`). A token is a secret of 256 random bits; its text begins with
/// "ucxt1-". Texts that are returned or given here are the caller's to wipe.
/// Only the user may read or write the file (mode 0600). Changes replace the whole file.
class UCXIO_EXPORT token_file {
 public:
  struct entry {
    std::string name = {};
    /// Servers of this user accept it. Else clients of this user have it for a server, and the name
    /// is "host" or "host:port".
    bool is_accepted = true;
  };

  /// Names a file, which does not have to exist. Without one it is `$XDG_CONFIG_HOME/ucxio/tokens`,
  /// or `~/.config/ucxio/tokens`.
  /// Errors: no_such_name (no home directory).
  explicit token_file(const std::filesystem::path& file = {}, std::error_code& ec = throws);

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Returns what is there, the oldest first; nothing, where there is no file.
  /// Errors: not_secure (the mode or the owner of the file), bad_configuration (a line is wrong),
  /// io_error and others of the file.
  std::vector<entry> list(std::error_code& ec = throws) const;
  /// Makes a token that servers of this user accept. Returns its text, for the client. The name
  /// "own" is that of the user's own token, which clients of this user show them.
  /// Errors: those of `list()`; bad_name, already_exists (two of that name are there).
  std::string create(std::string_view name, std::error_code& ec = throws);
  /// Adds a token that a server of another user made, for clients of this one.
  /// Errors: those of `create()`; invalid_argument (`text` is no token, or is damaged).
  void add(std::string_view name, std::string_view text, std::error_code& ec = throws);
  /// Gets a token from a server by a code of `server::invite()`, and adds it for that server.
  /// Errors: those of `add()`; permission_denied (the server refused the code: it was used, or is
  /// too old), connection_refused, timed_out (after five seconds), host_not_found, and others of a
  /// connection by TLS.
  void log_in(const url& server, std::string_view code, std::error_code& ec = throws);
  /// Removes the tokens of a name, or the oldest of them. Returns how many that were.
  /// Errors: those of `list()`; no_such_name (there is no file).
  std::size_t remove(std::string_view name, bool oldest_only = false, std::error_code& ec = throws);

 private:
  std::filesystem::path path_;
};

}  // namespace ucx
