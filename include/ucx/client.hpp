#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/context.hpp"
#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"
#include "ucx/worker_options.hpp"

namespace ucx {

class client;
class endpoint;

namespace detail {

class client_core;

// For the library's streams only: these may change in any version.

/// Returns the client that `client::shared()` returns, without asking whether the server is there.
/// The first question may fail with connection_reset, and is to be asked once more.
/// Errors: those of `client::shared()`.
UCXIO_EXPORT client unheard_client(const url& server, std::error_code& ec = throws);

/// Returns another handle to the connection of `lost`. If that is lost, connects again with the
/// options of that client. All callers that ask it for the replacement share that. A caller that
/// asks while another one connects gets the outcome of that attempt.
/// Errors: those of client's constructor; closed (by `close()`, before the loss or after it).
UCXIO_EXPORT client reconnected(const client& lost, std::error_code& ec = throws);

/// Returns the further connection with the given number to the server of `first`. It has its own
/// worker, and a thread that sleeps. It is made with the options of `first` when no handle to it
/// exists. All callers that ask that client for the number share it. Number 0 is its connection.
/// Errors: those of client's constructor; not_supported (a client that was made on a context of the
/// caller's), closed.
UCXIO_EXPORT client further_client(const client& first, std::size_t number,
                                   std::error_code& ec = throws);

}  // namespace detail

/// The options of a client.
struct client_options {
  /// UCX's transports, devices and configuration. Without named devices, UCX may use the interface
  /// that leads to the server and, unless that is loopback, its RDMA ports (`docs/how-to/rdma.md`).
  context_options context = {};
  /// Progress and deadlines. With `automatic` the caller's calls drive progress, from any thread.
  worker_options worker = {};
};

/// Counters of a client.
struct client_statistics {
  std::uint64_t opens = 0;          ///< Regions that were opened.
  std::uint64_t requests = 0;       ///< Questions to the server.
  std::uint64_t failures = 0;       ///< Questions that got an error, or no answer.
  staging_statistics staging = {};  ///< Of device memory here, of the first connection.
};

/// The options of a commit.
struct commit_options {
  bool durable = false;  ///< The file and its name are on the device.
  /// The writing ends: when the commit returns, other writers may open the name. If it succeeds,
  /// the region is closed, for every handle that shares it. Otherwise it stays open, and can be
  /// committed again if it was not thrown away (busy; io_error after it got its name).
  bool close = false;
};

/// The files and directories directly in a directory of a store.
struct directory_listing {
  std::vector<entry> entries = {};  ///< By name.
  /// The number of further names that are not served. They are symbolic links, special files, and
  /// names that are not UTF-8 or too long. 0 where the server is from before it told.
  std::uint64_t unserved = 0;

#if UCXIO_OLD_NAMES
#include "ucx/old_names/directory_listing.ipp"
#endif
};

/// Gets entries as they come, some hundred at a time, in order. Returns whether to go on.
using entry_visitor = std::function<bool(std::vector<entry>&&)>;

/// A connection to one server. It lists, describes and opens the server's names. One connection
/// serves any number of regions and streams, which keep it open.
/// Threads: sharing one object is safe, but for the destructor, `close()` and moves. Everything
/// opened through it may be used from any thread, one thread at a time for each region or stream.
class UCXIO_EXPORT client {
 public:
  /// Connects to the server of a URL, and ignores the URL's name. Returns when the server has
  /// answered. All addresses of the host are tried in the resolver's order, within one connect
  /// deadline.
  /// Errors: bad_url, host_not_found, connection_refused (no process listens there, or it is not a
  /// server), unreachable, timed_out (also where another program than ucxio listens there),
  /// version_mismatch, protocol_error, busy, too_many_files.
  explicit client(std::string_view server, const client_options& options = {},
                  std::error_code& ec = throws);
  explicit client(const url& server, const client_options& options = {},
                  std::error_code& ec = throws);

  /// Connects by worker address, without any IP address.
  /// Errors: those of the constructor by URL.
  explicit client(const worker_address& server, const client_options& options = {},
                  std::error_code& ec = throws);

  /// Returns the client that streams opened by URL share. The process has one for each server,
  /// which is made when there is none. It lingers after its last user has gone. A server that has
  /// not answered a moment ago is asked for a sign of life. If the connection is lost, a new one is
  /// made: a server that was started again is found. If the server ends afterwards, a call fails
  /// with connection_reset or closed_by_peer, and a change may have been made.
  /// Errors: those of the constructor; bad_configuration (`UCXIO_SHARED_IDLE_TIMEOUT`);
  /// forked_child.
  /// Cost: a round trip, unless the server has answered within 10 ms, or inside a handler. A server
  /// that is silent costs `heartbeat_timeout`, and then the time that connecting takes.
  static client shared(const url& server, std::error_code& ec = throws);
  /// Sets how long shared clients linger, so that a later user finds a connection. The default is
  /// 10 s, or the number of seconds in `UCXIO_SHARED_IDLE_TIMEOUT`. At most 16 clients linger; the
  /// one that has waited longest goes first. With zero none lingers, and those that do are closed
  /// before this returns.
  static void set_shared_idle_timeout(std::chrono::nanoseconds timeout);

  client(client&& other) noexcept;
  client& operator=(client&& other) noexcept;
  /// Lets go of the connection. It lives on while regions and streams need it.
  ~client();

  /// Returns another handle to the same connection.
  client share() const;

  /// Returns all published names, in order.
  /// Errors: no_memory (it takes more than 512 MiB: some million names; `visit()` does without).
  /// Cost: a round trip for each few hundred names.
  std::vector<entry> list(const io_options& options = {}, std::error_code& ec = throws);
  /// Lists like `list()`, without holding all names in memory: `visitor` gets them. An exception of
  /// `visitor` ends the list. The time-out bounds each question.
  /// Errors: those of `list()`, but no_memory; invalid_argument (`visitor` is empty).
  void visit(const entry_visitor& visitor, const io_options& options = {},
             std::error_code& ec = throws);

  /// Returns the entry of `name`.
  /// Errors: no_such_name; the connection's.
  entry stat(std::string_view name, const io_options& options = {}, std::error_code& ec = throws);

  /// Returns whether the server has `name`: a published name, or a file or directory of a store.
  /// Errors: bad_name; the connection's.
  bool exists(std::string_view name, const io_options& options = {}, std::error_code& ec = throws);

  /// Opens `name` for the access `wanted`.
  /// Errors: no_such_name, permission_denied, bad_name; connection_reset, timed_out, closed.
  /// Cost: one round trip.
  remote_region open(std::string_view name, access wanted = access::read,
                     const io_options& options = {}, std::error_code& ec = throws);

  /// Returns the files and directories directly in a directory of a store, and how many names it
  /// leaves out. "" is the root of a store without a prefix.
  /// Errors: no_such_name, not_supported (a file; a server from before there were stores),
  /// permission_denied; no_memory, as `list()`.
  directory_listing list_directory(std::string_view directory, const io_options& options = {},
                                   std::error_code& ec = throws);
  /// Lists like `list_directory()`, as `visit()` does. Returns the number of names that are not
  /// served.
  /// Errors: those of `list_directory()`, but no_memory; invalid_argument (`visitor` is empty).
  std::uint64_t visit_directory(std::string_view directory, const entry_visitor& visitor,
                                const io_options& options = {}, std::error_code& ec = throws);

  /// Opens a file of a writable store to be written. The file does not have to exist, and grows as
  /// it is written. A new or replacing file has no name until `commit()`. Without a commit it is
  /// thrown away. One client writes a file at a time.
  /// Errors: no_such_name (no store has such names), bad_name, permission_denied (the store is not
  /// writable; the system), busy (another client writes it), already_exists (`exclusive`),
  /// too_many_store_files, too_many_client_files, too_many_writers, too_many_files, not_supported
  /// (a directory; a name that was published by itself, but for `overwrite`; a server from before
  /// there were stores), no_space.
  /// Cost: one round trip.
  remote_region create(std::string_view name, const create_options& how = {},
                       const io_options& options = {}, std::error_code& ec = throws);

  /// Gives a file of `create` its name, when every write through `file` is in it. Makes the
  /// directories that are missing. Returns the entry of the file. Later writes through `file` go
  /// into the file that has the name.
  /// Errors: that of a failed write, now and at every further call, or that of the store: the file
  /// is then thrown away; no_space, already_exists (`exclusive`, and another file got the name
  /// first), not_supported (a directory has the name; another file system), permission_denied (it
  /// was opened for reading), no_such_region (not a file that this client has open); busy (it is
  /// being committed, or the server is short of threads): the file is kept.
  entry commit(remote_region& file, const commit_options& how = {}, const io_options& options = {},
               std::error_code& ec = throws);

  /// Asks for the present length of a file that this client opened, and lets `file` reach so far.
  /// Returns when the length is not `known` any more, at the latest after `wait`. A change by
  /// another program on the server's machine is noticed at once. A change by another machine, in a
  /// file system that both mount, is noticed within a second after the server's machine sees it.
  /// Errors: not_supported (`file.can_refresh_size()` is false), no_such_region (not of this
  /// client), revoked, busy (this client waits for 1024 already), io_error; the connection's.
  /// Cost: one round trip, and one for each half minute of waiting.
  entry refresh_size(remote_region& file, std::uint64_t known = 0,
                     std::chrono::nanoseconds wait = std::chrono::nanoseconds::zero(),
                     const io_options& options = {}, std::error_code& ec = throws);

  /// Has the owner hash a file that this client opened, to compare it without fetching it. Bytes
  /// written through `file` count once they were flushed. Bytes that others write meanwhile may be
  /// hashed or not.
  /// Errors: not_supported (memory; a server from before it hashed), invalid_argument (chunks of
  /// nothing), out_of_range, permission_denied (it was not opened for reading), content_changed (it
  /// was cut off), busy (this client asks 16 already), no_such_region (not of this client),
  /// revoked, io_error; the connection's.
  /// Cost: a round trip for each 64 MiB, and the owner's disk. A disk of less than 16 MiB a second
  /// may time out.
  std::vector<content_digest> digest(remote_region& file, const digest_range& wanted,
                                     const io_options& options = {}, std::error_code& ec = throws);

  /// Removes a file, or an empty directory, of a writable store.
  /// Errors: no_such_name, permission_denied, busy (a client writes it), already_exists (a
  /// directory that is not empty).
  void remove(std::string_view name, const io_options& options = {}, std::error_code& ec = throws);
  /// Renames a file or directory within a writable store. Makes the directories that are missing.
  /// An entry that has the new name is replaced.
  /// Errors: those of `remove()`; not_supported (between stores).
  void rename(std::string_view from, std::string_view to, const io_options& options = {},
              std::error_code& ec = throws);
  /// Makes a file of a writable store `size` bytes long. Added bytes are zero.
  /// Errors: those of `remove()`; no_space, not_supported (a directory).
  void resize(std::string_view name, std::uint64_t size, const io_options& options = {},
              std::error_code& ec = throws);

  /// Makes a file that this client writes `size` bytes long, after everything written through
  /// `file` before.
  /// Errors: that of a failed write; no_space, permission_denied (it was opened for reading),
  /// no_such_region (not a file of a store that this client has open), busy (another handle writes
  /// it, or it is being committed).
  void resize(remote_region& file, std::uint64_t size, const io_options& options = {},
              std::error_code& ec = throws);

  /// Returns no error while the connection is usable, and `closed` after `close()`. Otherwise
  /// returns why the connection failed.
  std::error_code status() const noexcept;
  /// Returns the server's URL; empty for a connection by worker address.
  const url& server() const noexcept;
  /// Returns the version of the server's library.
  std::string server_version() const;
  /// Returns the transports in use as "transport/device", as UCX names them.
  std::vector<std::string> transports() const;
  client_statistics statistics() const;

  /// Returns the worker that drives the connection. The modes `caller` (between calls) and
  /// `external` need it.
  /// Lifetime: the client's.
  ucx::worker& worker() noexcept;
  /// Returns another handle to the connection itself, for messages to the server's program. The
  /// client uses the connection, too: closing it closes the client's.
  endpoint connection() const;

  /// Closes the connection for every handle, region and stream, and tells the server. Idempotent.
  void close() noexcept;

#if UCXIO_OLD_NAMES
#include "ucx/old_names/client.ipp"
#endif

 private:
  friend struct detail::core_access;
  client() noexcept = default;
  std::shared_ptr<detail::client_core> core_;
};

}  // namespace ucx
