// Where a server is found.
#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "store/address_file.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// At a socket, in files that name its worker, or both. Safe from any thread, but for what is said
/// of it before anybody else has it.
class server_addresses {
 public:
  server_addresses() = default;
  server_addresses(const server_addresses&) = delete;
  server_addresses& operator=(const server_addresses&) = delete;

  // Before anybody else has it.
  void listens_at(const socket_address& local, bool by_ucx, bool by_tls) {
    socket_ = local;
    by_ucx_ = by_ucx;
    by_tls_ = by_tls;
  }
  /// It uses no interface but the one for loopback.
  void set_local(bool local) noexcept { is_local_ = local; }

  /// Returns where it listens; an empty one where it does not.
  const socket_address& socket() const noexcept { return socket_; }
  /// Writes a file that names `own`. Errors: closed, and as of `address_file::write`.
  result<void> publish(const std::filesystem::path& file, const worker_address& own);
  /// Returns the URL of `name`, or of the server; nothing where there is none.
  std::string url(std::string_view name) const;
  /// The server is not to be found any more: removes the files.
  void close() noexcept;

 private:
  socket_address socket_;
  bool by_ucx_ = true;
  bool by_tls_ = false;
  bool is_local_ = false;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<address_file>> files_;
  bool closed_ = false;
};

}  // namespace ucx::detail
