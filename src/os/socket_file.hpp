// The file of a Unix socket that a server listens at: whose place it is, and when it goes.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "base/owned_descriptor.hpp"
#include "base/result.hpp"

namespace ucx::detail {

/// A place at which nothing is, from `claim` on. Other servers of this library wait until `bound`.
/// The file is removed with this object, if it is still the one that was bound.
class socket_file {
 public:
  /// Removes the file that a killed server left. Without a path, chooses one in
  /// `socket_directory()`.
  /// Errors: address_in_use (a server listens there), already_exists (a link, another user's file,
  /// or no socket), not_secure (others may change the directory), no_such_name, permission_denied,
  /// busy, io_error.
  static result<std::unique_ptr<socket_file>> claim(const std::string& path);
  ~socket_file();
  socket_file(const socket_file&) = delete;
  socket_file& operator=(const socket_file&) = delete;

  const std::string& path() const noexcept { return path_; }
  /// The caller listens at the path. Errors: io_error, where something else is there.
  result<void> bound();

 private:
  socket_file(std::string path, std::string name, owned_descriptor directory) noexcept
      : path_(std::move(path)), name_(std::move(name)), directory_(std::move(directory)) {}
  static result<std::unique_ptr<socket_file>> claim_free(const std::string& path);
  result<void> lock() const;
  result<void> make_free() const;

  std::string path_;
  std::string name_;
  owned_descriptor directory_;
  ::pid_t owner_ = 0;  // the process that listens, once it does
  ::dev_t device_ = 0;
  ::ino_t number_ = 0;
};

/// Returns the directory of this user's sockets, which is made where it is missing:
/// `$XDG_RUNTIME_DIR/ucxio`, else `/tmp/ucxio-UID`. Only this user can look into it.
/// Errors: not_secure (it is a link, or another user's, or others may enter), no_such_name (that of
/// the variable), permission_denied, no_space, io_error.
result<std::string> socket_directory();

/// Removes the sockets in that directory at which no process listens, as killed servers leave them,
/// whose names begin with `prefix`. Looks at 1000 files at most.
void remove_stale_sockets(const std::string& prefix) noexcept;

/// Says why a client can not connect to a server at `path`, as far as the file shows it.
/// Errors: connection_refused, permission_denied.
result<void> check_socket_file(const std::string& path);

}  // namespace ucx::detail
