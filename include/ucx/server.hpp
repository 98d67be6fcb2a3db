#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/connection_report.hpp"
#include "ucx/context.hpp"
#include "ucx/entry.hpp"
#include "ucx/export.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/publication.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/staging_statistics.hpp"
#include "ucx/store_options.hpp"
#include "ucx/worker.hpp"
#include "ucx/worker_address.hpp"

namespace ucx {

namespace detail {
class server_core;
}

/// How a server is made.
struct server_options {
  /// Where it listens: "host:port", with a numeric host or a name; port 0 lets the system choose.
  /// Empty: nowhere; peers connect by worker address.
  std::string bind = "127.0.0.1:0";
  /// Allows an address that is not loopback. UCX's TCP transport has no access control of its own:
  /// whoever can connect can read and write the process (`docs/how-to/security.md`).
  bool insecure = false;
  /// UCX's transports, devices and configuration. Unless it names devices, they are limited to the
  /// interface of `bind` and, unless that is loopback, the machine's RDMA devices.
  context_options context = {};
  /// Progress and deadlines. `automatic` is a thread that sleeps, and spins a little after
  /// activity.
  worker_options worker = {};
  /// Clients at a time; the next one is refused with `busy`.
  std::size_t most_clients = 10'000;
  /// How many workers serve, each with a core of its own where there are as many: those who come to
  /// the listener are given to them in turn, those who come by worker address stay with the first.
  /// `worker` is about the first one; the others have its deadlines, and a thread each that sleeps.
  /// From 1 to `most_workers`.
  std::size_t workers = 1;
  /// Called from progress when clients can not connect any more, or not all of them, and only
  /// another server could mend that: see `listener_options::on_failure`. May be called again, for
  /// another port; not any more when `close()` has returned.
  std::function<void(const listener_failure&)> on_failure = {};

  static constexpr std::size_t most_workers = 64;
};

/// Where a server can be reached.
struct server_address {
  socket_address socket = {};  ///< Empty for a server that does not listen.
  worker_address worker = {};
};

/// What a server has done so far.
struct server_statistics {
  std::uint64_t clients = 0;         ///< Connected now.
  std::uint64_t clients_served = 0;  ///< Since it was made.
  std::uint64_t names = 0;           ///< Published now.
  std::uint64_t opens = 0;           ///< Answered with a region.
  std::uint64_t refusals = 0;        ///< Requests that were answered with an error.
  staging_statistics staging = {};   ///< Of memory of devices: of all its workers.
};

/// A catalogue of named regions and files that peers may list and open.
/// Threads: sharing one object is safe, but for the destructor and moves.
class UCXIO_EXPORT server {
 public:
  /// Makes a server that serves from now on, at `address()`.
  /// Errors: not_secure (an address that is not loopback, without `insecure`), address_in_use,
  /// permission_denied, bad_address, host_not_found, too_many_files, bad_configuration,
  /// invalid_argument (a number of `workers` that can not be).
  explicit server(const server_options& options = {});
  server(const server_options& options, std::error_code& ec);

  server(server&& other) noexcept;
  server& operator=(server&& other) noexcept;
  /// Closes.
  ~server();

  /// Publishes the caller's memory under `name`; also that of a CUDA device (`memory_region`).
  /// Lifetime: `bytes`, until the publication is gone.
  /// Errors: already_exists, bad_name (empty, not UTF-8, longer than 1024 bytes), closed,
  /// no_memory, no_lockable_memory.
  publication publish(std::string_view name, std::span<std::byte> bytes, access granted);
  publication publish(std::string_view name, std::span<std::byte> bytes, access granted,
                      std::error_code& ec);
  /// The same of memory that is said to be at `expected`. Errors: also invalid_argument
  /// (`memory_region`).
  publication publish(std::string_view name, std::span<std::byte> bytes, access granted,
                      const memory_place& expected);
  publication publish(std::string_view name, std::span<std::byte> bytes, access granted,
                      const memory_place& expected, std::error_code& ec);
  /// Publishes the caller's memory for reading.
  publication publish(std::string_view name, std::span<const std::byte> bytes);
  publication publish(std::string_view name, std::span<const std::byte> bytes, std::error_code& ec);

  /// A container that dies with the call can not be published: deleted.
  template <std::ranges::range Range, class... Rest>
  requires(!std::ranges::borrowed_range<Range>) publication
      publish(std::string_view name, Range&& bytes, Rest&&... rest)
  = delete;

  /// Allocates `size` zeroed bytes, which processes of the same host and user map, and publishes
  /// them. They are gone with the publication. Errors: as publish().
  publication allocate(std::string_view name, std::size_t size, access granted);
  publication allocate(std::string_view name, std::size_t size, access granted,
                       std::error_code& ec);

  /// The same at `place`. Errors: as publish(), and as `memory_region::allocate()` of a place.
  publication allocate(std::string_view name, std::size_t size, access granted,
                       const memory_place& place);
  publication allocate(std::string_view name, std::size_t size, access granted,
                       const memory_place& place, std::error_code& ec);

  /// Publishes a regular file: the one that has this path now, also when another one gets it. It is
  /// read when peers ask; who opens it has the size that it has then, and sees what is appended by
  /// asking again (`docs/reference/streams.md`). One that became shorter is `content_changed` for
  /// them. Errors: as publish(); not_supported (`granted` has write; not a regular file),
  /// no_such_name, permission_denied, too_many_files, io_error of the file.
  publication publish_file(std::string_view name, const std::filesystem::path& file,
                           access granted = access::read);
  publication publish_file(std::string_view name, const std::filesystem::path& file, access granted,
                           std::error_code& ec);

  /// Publishes the files of a directory, and of those below it: each is looked up when a client
  /// asks for it, and the client has what the file is then. Symbolic links are not followed, and
  /// nothing but regular files is served. Where names of several stores could be meant, the longest
  /// prefix decides, and what was published by name hides a file. Threads: what may wait for a disk
  /// is done by threads of the store's own; closing waits two seconds for them at most. Errors:
  /// already_exists (a store or name of that prefix), bad_name (the prefix), no_such_name,
  /// permission_denied, not_supported (not a directory), busy (another server writes that store),
  /// invalid_argument (a `write_window` that no message fits), closed.
  publication publish_store(const std::filesystem::path& directory,
                            const store_options& options = {});
  publication publish_store(const std::filesystem::path& directory, const store_options& options,
                            std::error_code& ec);

  /// Makes a store in this machine's memory, for files that need no disk: a directory of its own
  /// in `within`, which has to be a tmpfs, and which only this user can look into. Clients may
  /// write it (whatever `options.writable` says), up to `options.quota`, which has to be said. The
  /// quota bounds the lengths of the files, not the memory: each takes whole pages, and some for
  /// its name, also where it is empty. The store is removed with the publication, and what a server
  /// has left that was killed with the next one that the same user makes in `within`. Errors: as
  /// publish_store(); invalid_argument (no quota), not_supported (no tmpfs), no_space (less than
  /// the quota is free there).
  publication allocate_store(const store_options& options,
                             const std::filesystem::path& within = "/dev/shm");
  publication allocate_store(const store_options& options, const std::filesystem::path& within,
                             std::error_code& ec);

  /// Withdraws `name`, as its publication's `close()` does. Errors: no_such_name.
  void unpublish(std::string_view name);
  void unpublish(std::string_view name, std::error_code& ec);

  /// Returns what is published, by name.
  std::vector<entry> list() const;

  /// Returns where peers can reach the server.
  server_address address() const;
  /// Writes the server's worker address into a file, whole at once, for peers that see the file and
  /// need no IP address then: `ucx+file://path/name`. Readable by this user alone; removed when the
  /// server closes, if it is still that one. One that a server left is replaced, any other file is
  /// kept. Who can write the file decides whom its readers reach. Errors: already_exists (a file
  /// that no server wrote), bad_name, no_such_name (its directory), permission_denied,
  /// not_supported (no regular file), no_space, io_error, closed.
  void publish_address(const std::filesystem::path& file);
  void publish_address(const std::filesystem::path& file, std::error_code& ec);
  /// Returns the URL of the server, or of a name; the name is percent-encoded. On a wildcard
  /// address the host is this machine's name; where it does not listen it is that of the first
  /// address file. Errors: not_supported (it does not listen, and has no address file), closed.
  std::string url() const;
  std::string url(std::string_view name) const;

  server_statistics statistics() const;

  /// Returns the worker that drives the server, or one of its others, which have threads of their
  /// own: for modes `caller` and `external`, whose caller has to `progress()` or `run()` the first.
  /// Lifetime: the server's. REQUIRES: `number` is less than `workers()`.
  ucx::worker& worker(std::size_t number = 0) noexcept;
  /// Returns `server_options::workers`.
  std::size_t workers() const noexcept;

  /// Withdraws every name and leaves the clients; bounded by the worker's `heartbeat_timeout`.
  /// Idempotent; later calls fail with `errc::closed`.
  void close() noexcept;

 private:
  friend struct detail::core_access;
  explicit server(std::shared_ptr<detail::server_core> core) noexcept;
  std::shared_ptr<detail::server_core> core_;
};

}  // namespace ucx
