// A file that tells where a server is: peers that see it need no IP address.
#pragma once

#include <filesystem>
#include <memory>
#include <utility>

#include "base/owned_descriptor.hpp"
#include "base/result.hpp"
#include "ucx/peer_address.hpp"

namespace ucx::detail {

/// The location that such a file holds.
struct server_location {
  worker_address address = {};
  bool local = false;  ///< Peers need no other interface than the one for loopback.

  friend bool operator==(const server_location&, const server_location&) = default;
};

/// Holds a worker address as text (`to_string`), words behind it, and a newline; readable by its
/// owner alone.
class address_file {
 public:
  /// Writes the file at once, whole: a reader sees the file before, none, or this one. One that
  /// another server left is replaced. Errors: already_exists (a file that no server wrote),
  /// bad_name, no_such_name, permission_denied, no_space, not_supported (no regular file),
  /// io_error.
  static result<std::unique_ptr<address_file>> write(const std::filesystem::path& path,
                                                     const server_location& where);
  /// Errors: connection_refused (there is none), permission_denied, bad_address (damaged, or
  /// something else), version_mismatch, io_error.
  static result<server_location> read(const std::filesystem::path& path);
  /// Removes the file, unless another one has its name now.
  ~address_file();
  address_file(const address_file&) = delete;
  address_file& operator=(const address_file&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  explicit address_file(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path path_;  // absolute
  owned_descriptor file_;             // as long as it is open, no other file can be taken for it
};

}  // namespace ucx::detail
