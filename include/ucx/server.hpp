#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/access_rules.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/context.hpp"
#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/old_option.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/publication.hpp"
#include "ucx/server_limits.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"
#include "ucx/worker_options.hpp"

namespace ucx {

namespace detail {
class server_core;
}

/// The options of a server.
struct server_options {
  /// The address to listen on: "host:port", with a numeric host or a name. Port 0 lets the system
  /// choose. "[::]:port" is IPv4 and IPv6; over plain UCX "127.0.0.1:port,[::1]:port" as well
  /// (`docs/reference/connections.md`). Empty, which needs UCX: it does not listen, and peers
  /// connect by worker address. "unix:/path/server.sock" is a Unix socket, without UCX. The last
  /// component alone ends in ".sock". "unix:" lets the server choose a file in
  /// `$XDG_RUNTIME_DIR/ucxio`, else in `/tmp/ucxio-UID`. Clients of this user and of root are let
  /// in, and those of `context_options::peer_users`. It replaces a file that a killed server left.
  std::string bind = "127.0.0.1:0";
  /// Allows the transports "ucx" and "socket" an address that is not loopback. UCX's TCP transport
  /// has no access control: each process that can connect can read and write this process. RDMA
  /// hardware lets peers read and write published memory, whatever was granted
  /// (`docs/how-to/security.md`).
  bool insecure = false;
  /// Empty `transports` mean {"tls", "unix"} on loopback, where this user's token is made, and else
  /// {"tls"}. Plain UCX is {"ucx"}: each process that can connect can read and write this process.
  /// Without named devices, UCX may use the interface of `bind` and, unless that is loopback, its
  /// RDMA ports (`docs/how-to/rdma.md`).
  context_options context = {};
  /// Progress and deadlines. With `automatic`, a thread sleeps, and spins a little after activity.
  worker_options worker = {};
  /// For one version: `max_clients`.
  detail::old_option<std::size_t> most_clients = {};
  /// The number of clients at a time. A further one is refused with `busy`.
  std::size_t max_clients = most_clients.value_or(10'000);
  /// Bounds of what clients use: by identity, by source address, and in all.
  server_limits limits = {};
  /// The number of workers that serve. Each can keep one core busy. Clients that connect to the
  /// listener are given to the workers in turn. Clients that connect by worker address stay with
  /// the first. `worker` describes the first one. The others have its deadlines, and a thread each
  /// that sleeps. From 1 to `max_workers`.
  std::size_t workers = 1;
  /// Called from progress when clients can not connect any more, or not all of them. Only another
  /// server could mend that: see `listener_options::on_failure`. It may be called again, for
  /// another port. It is not called any more after `close()` has returned.
  std::function<void(const listener_failure&)> on_failure = {};
  /// The rights of clients. Without rules each client may do all that is served. They bind peers by
  /// UCX only as far as these keep to ucxio's protocol (`docs/how-to/security.md`).
  std::optional<access_rules> rules = {};
  /// A file that gets a line of JSON for each open, refusal and change
  /// (`docs/reference/rules.md`). A thread of the server writes it, and makes it where it is not
  /// there, with mode 0600. Lines that a slow disk has no time for are dropped and counted.
  /// Errors of making the server: those of the file.
  std::filesystem::path audit_file = {};

  static constexpr std::size_t max_workers = 64;
#if UCXIO_OLD_NAMES
  [[deprecated("max_workers")]] static constexpr std::size_t most_workers = max_workers;
#endif
};

/// The addresses of a server.
struct server_address {
  socket_address socket = {};  ///< Empty for a server that does not listen.
  worker_address worker = {};  ///< Empty for a server without UCX, as by default.
};

/// Counters of a server.
struct server_statistics {
  std::uint64_t clients = 0;         ///< Clients that are connected now.
  std::uint64_t clients_served = 0;  ///< Clients since the server was made.
  std::uint64_t names = 0;           ///< Names that are published now.
  std::uint64_t opens = 0;           ///< Requests that were answered with a region.
  std::uint64_t refusals = 0;        ///< Requests that were answered with an error.
  staging_statistics staging = {};   ///< Of device memory, of all workers.
};

/// A catalogue of named regions and files that peers may list and open. By default processes of
/// this user get in, and others by a token.
/// Threads: sharing one object is safe, but for the destructor and moves.
class UCXIO_EXPORT server {
 public:
  /// Makes a server that serves from now on, at `address()`.
  /// Errors: not_secure (an address that is not loopback, without `insecure` or TLS; a file of
  /// tokens that others may read), address_in_use, permission_denied (also: there is no token),
  /// bad_address, host_not_found, too_many_files, bad_configuration (also options that need UCX,
  /// which is not named), invalid_argument (a number of `workers` that can not be), not_supported
  /// (UCX or this machine has no IPv6, where both families are asked for). Of a Unix socket:
  /// no_such_name (its directory), not_secure (other users may change it), busy (another server
  /// begins there), and already_exists. The last means a file that is no socket of this user.
  explicit server(const server_options& options = {}, std::error_code& ec = throws);

  server(server&& other) noexcept;
  server& operator=(server&& other) noexcept;
  /// Closes.
  ~server();

  /// Publishes the caller's memory under `name`. It may be a CUDA device's. `expected` says where
  /// it has to be; without a value it may be anywhere (`memory_region`).
  /// Lifetime: `bytes`, until the publication is gone.
  /// Errors: already_exists, bad_name (empty, not UTF-8, longer than 1024 bytes), closed,
  /// no_memory, no_lockable_memory, invalid_argument (also for memory that is not where it is
  /// expected), and those of `memory_region`.
  publication publish(std::string_view name, std::span<std::byte> bytes, access granted,
                      const std::optional<memory_place>& expected = std::nullopt,
                      std::error_code& ec = throws);
  /// Publishes the caller's memory for reading. RDMA hardware reads only what the process may
  /// write, too. The rest goes by message (`memory_region`). Lifetime: `bytes`, until the
  /// publication is gone.
  publication publish(std::string_view name, std::span<const std::byte> bytes,
                      std::error_code& ec = throws);

  /// A container that dies with the call can not be published: deleted.
  template <std::ranges::range Range, class... Rest>
  requires(!std::ranges::borrowed_range<Range>) publication
      publish(std::string_view name, Range&& bytes, Rest&&... rest)
  = delete;

  /// Allocates `size` zeroed bytes at `place`, the host's unless it says otherwise, and publishes
  /// them. Processes of this host and user map the host's. The bytes are gone with the publication.
  /// Errors: those of `publish()` and of `memory_region::allocate()`.
  publication allocate(std::string_view name, std::size_t size, access granted,
                       const memory_place& place = {}, std::error_code& ec = throws);

  /// Publishes a regular file: the file that has this path now, even if the path later leads to
  /// another one. It is read when peers ask. A client that opens it gets its present size. It sees
  /// appended bytes by asking again (`docs/reference/streams.md`). A file that became shorter is
  /// `content_changed` for its clients.
  /// Errors: those of `publish()`; not_supported (`granted` has write; not a regular file),
  /// no_such_name, permission_denied, too_many_files, io_error of the file.
  publication publish_file(std::string_view name, const std::filesystem::path& file,
                           access granted = access::read, std::error_code& ec = throws);

  /// Publishes the files of a directory, and of the directories below. A file is looked up when a
  /// client asks for it, and the client gets the file of that moment. Symbolic links are not
  /// followed. Only regular files are served. Where names of several stores could be meant, the
  /// longest prefix decides. A name that was published by itself hides a file.
  /// Errors: already_exists (a store or name of that prefix), bad_name (the prefix), no_such_name,
  /// permission_denied, not_supported (not a directory), busy (another server writes that store),
  /// invalid_argument (a `write_window` that no message fits), closed.
  /// Threads: the store's own threads do the work that may wait for a disk. Closing waits two
  /// seconds for them at most.
  publication publish_store(const std::filesystem::path& directory,
                            const store_options& options = {}, std::error_code& ec = throws);

  /// Makes a store in this machine's memory, for files that need no disk. It is a new directory in
  /// `within`, which has to be a tmpfs. Only this user can look into the directory. Clients may
  /// write the store, whatever `options.writable` says, up to `options.quota`, which has to be set.
  /// The quota bounds the lengths of the files, not the memory. Each file, also an empty one, takes
  /// whole pages, and some for its name. The store is removed with the publication. The store of a
  /// server that was killed is removed by the next one that this user makes in `within`.
  /// Errors: those of `publish_store()`; invalid_argument (no quota), not_supported (no tmpfs),
  /// no_space (less than the quota is free there).
  publication allocate_store(const store_options& options,
                             const std::filesystem::path& within = "/dev/shm",
                             std::error_code& ec = throws);

  /// Returns the published names, in order.
  std::vector<entry> list() const;

  /// Returns the addresses at which peers can reach the server. A Unix socket beside a port is not
  /// told: clients find it by the port.
  server_address address() const;
  /// Writes the server's worker address into a file, whole at once. Peers that see the file then
  /// need no IP address: `ucx+file://path/name`. Only this user can read the file. The server
  /// removes it when it closes, if it is still that file. A file that another server left is
  /// replaced; any other file is kept. A user that can write the file decides which server its
  /// readers reach.
  /// Errors: already_exists (a file that no server wrote), bad_name, no_such_name (its directory),
  /// permission_denied, not_supported (no regular file; a server without UCX, as by default),
  /// no_space, io_error, closed.
  void publish_address(const std::filesystem::path& file, std::error_code& ec = throws);
  /// Returns the URL of the server, or of a name, which is percent-encoded. On a wildcard address
  /// the host is this machine's name. For a server that does not listen it is the URL of the first
  /// address file.
  /// Errors: not_supported (it does not listen, and has no address file), closed.
  std::string url(std::string_view name = {}, std::error_code& ec = throws) const;

  /// Lets one client in that has no token, by a server of TLS whose tokens are in a file. Returns a
  /// code, which the caller gives to it. It counts once, for ten minutes, and until the next is
  /// made. The client gets a token by `token_file::log_in()`; the file gets it under
  /// `name`.
  /// Errors: not_supported (no TLS, or no file), bad_name.
  std::string invite(std::string_view name, std::error_code& ec = throws);

  /// Reads the files of the server's certificates again (`certificate_files`). Connections whose
  /// certificate does not count any more, because it was revoked or its CA is none any more, end
  /// when their worker is driven. An error leaves the old ones in force; one of the own, just that.
  /// Errors: not_supported (there are none), and those of making a context with them.
  void reload_certificates(std::error_code& ec = throws);

  server_statistics statistics() const;

  /// Replaces the rules; without a value each client may do all that is served. Regions that a
  /// client has open, and may not any more, are revoked at once. Files that it writes there are
  /// thrown away. Pipes between clients go on.
  void set_rules(std::optional<access_rules> rules);

  /// Returns one of the server's workers. The first one drives the server: in the modes `caller`
  /// and `external` the caller has to `progress()` or `run()` it. The others have threads.
  /// Lifetime: the server's.
  /// REQUIRES: `number` is less than `workers()`.
  ucx::worker& worker(std::size_t number = 0) noexcept;
  /// Returns `server_options::workers`; one more by UCX at both families, the last, for IPv6.
  std::size_t workers() const noexcept;

  /// Withdraws every name and disconnects the clients, within the worker's `heartbeat_timeout`.
  /// Idempotent. Later calls fail with `errc::closed`.
  void close() noexcept;

#if UCXIO_OLD_NAMES
#include "ucx/old_names/server.ipp"
#endif

 private:
  friend struct detail::core_access;
  explicit server(std::shared_ptr<detail::server_core> core) noexcept;
  std::shared_ptr<detail::server_core> core_;
};

}  // namespace ucx
