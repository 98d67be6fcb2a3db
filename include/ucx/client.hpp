#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/client_options.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/entry.hpp"
#include "ucx/error.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/remote_file.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"
#include "ucx/url.hpp"
#include "ucx/version.hpp"
#include "ucx/worker.hpp"

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

/// A connection to one server. It lists, describes and opens the server's names. One connection
/// serves any number of regions and streams, which keep it open.
/// Threads: sharing one object is safe, but for the destructor, `close()` and moves. Over a worker
/// of the caller's it needs the `thread_mode` of that worker. Everything
/// opened through it may be used from any thread, one thread at a time for each region or stream.
///
/// `start_` forms are requests. They complete when the server has answered, and the result is where
/// the caller wanted it. A request that ends early leaves the result as it was, and takes nothing
/// back: a change may have been made. Their errors are those of the other form.
/// Lifetime: the result, and the handle of a region, until the request is done or gone. When the
/// client goes, its requests are `closed`.
class UCXIO_EXPORT client {
 public:
  /// Makes a client of no server. Its calls fail with `closed`; `worker()` may not be called.
  client() noexcept = default;
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

  /// Connects over a worker of the caller's, which drives the client from then on, with its own
  /// options. The context needs the transports that the URL's scheme means. Such a client has one
  /// connection, and no reconnecting. The file of a `ucx+file:` URL is read within the call.
  /// Completes: in a round of progress, when `made` is the client. Until then `made` is empty.
  /// Lifetime: `made`, until the request is done or gone.
  /// Errors: those of the constructor; bad_configuration (other transports). A request that ends
  /// early gives the connection up without waiting. The time-out is the worker's
  /// `connect_timeout`, unless `options` have one.
  static request start_connect(ucx::worker& driven, const url& server, client& made,
                               const io_options& options = {});

  /// Returns in `found` the client that all callers over this worker share. If there is none, or it
  /// is lost, it is connected as by `start_connect()`. Callers meanwhile get the outcome of the
  /// same attempt. The shared client of streams is another one, because it has its own worker.
  /// Completes: when `found` is the client; at once where there is one.
  /// Lifetime: `found`, until the request is done or gone. The client lives as long as its handles.
  /// Errors: those of `start_connect()`. A request that ends early leaves the others alone.
  static request start_shared(ucx::worker& driven, const url& server, client& found,
                              const io_options& options = {});

  /// Returns the client that streams opened by URL share. The process has one for each server,
  /// which is made when there is none. It lingers after its last user has gone. A server that has
  /// not answered a moment ago is asked for a sign of life. If the connection is lost, a new one is
  /// made: a server that was started again is found. If the server ends afterwards, a call fails
  /// with connection_reset or closed_by_peer, and a change may have been made.
  /// Errors: those of the constructor; bad_configuration (`UCXIO_SHARED_IDLE_TIMEOUT`);
  /// forked_child (by UCX, in a child of `fork()` whose parent had it).
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

  /// Lists like `list()`.
  request start_list(std::vector<entry>& found, const io_options& options = {});

  /// Returns the entry of `name`.
  /// Errors: no_such_name; the connection's.
  entry stat(std::string_view name, const io_options& options = {}, std::error_code& ec = throws);
  request start_stat(std::string_view name, entry& found, const io_options& options = {});

  /// Returns whether the server has `name`: a published name, or a file or directory of a store.
  /// Errors: bad_name; the connection's.
  bool exists(std::string_view name, const io_options& options = {}, std::error_code& ec = throws);

  /// Opens `name` for the access `wanted`.
  /// Errors: no_such_name, permission_denied, bad_name; connection_reset, timed_out, closed.
  /// Cost: one round trip.
  remote_region open(std::string_view name, access wanted = access::read,
                     const io_options& options = {}, std::error_code& ec = throws);
  /// Opens like `open()`. `made` is let go of before anything is asked, as by its destructor.
  /// Completes: in a round of progress, when `made` is the region.
  request start_open(std::string_view name, access wanted, remote_region& made,
                     const io_options& options = {});

  /// Returns the files and directories directly in a directory of a store, and how many names it
  /// leaves out. "" is the root of a store without a prefix.
  /// Errors: no_such_name, not_supported (a file; a server from before there were stores),
  /// permission_denied; no_memory, as `list()`.
  directory_listing list_directory(std::string_view directory, const io_options& options = {},
                                   std::error_code& ec = throws);
  request start_list_directory(std::string_view directory, directory_listing& found,
                               const io_options& options = {});
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
  /// Creates like `create()`. The rest is as for `start_open`.
  request start_create(std::string_view name, const create_options& how, remote_region& made,
                       const io_options& options = {});

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
  request start_commit(remote_region& file, const commit_options& how, entry& described,
                       const io_options& options = {});

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
  request start_refresh_size(remote_region& file, std::uint64_t known,
                             std::chrono::nanoseconds wait, entry& described,
                             const io_options& options = {});

  /// Has the owner hash a file that this client opened, to compare it without fetching it. Bytes
  /// written through `file` count once they were flushed. Bytes that others write meanwhile may be
  /// hashed or not.
  /// Errors: not_supported (memory; a server from before it hashed), invalid_argument (chunks of
  /// nothing), out_of_range, permission_denied (it was not opened for reading), content_changed (it
  /// was cut off), busy (this client asks 16 already), no_such_region (not of this client),
  /// revoked, io_error; the connection's.
  /// Cost: a round trip for each 64 MiB, and the owner's disk: below 16 MiB/s it may time out.
  std::vector<content_digest> digest(remote_region& file, const digest_range& wanted,
                                     const io_options& options = {}, std::error_code& ec = throws);
  request start_digest(remote_region& file, const digest_range& wanted,
                       std::vector<content_digest>& found, const io_options& options = {});

  /// Removes a file, or an empty directory, of a writable store.
  /// Errors: no_such_name, permission_denied, busy (a client writes it), already_exists (a
  /// directory that is not empty).
  void remove(std::string_view name, const io_options& options = {}, std::error_code& ec = throws);
  request start_remove(std::string_view name, const io_options& options = {});
  /// Renames a file or directory within a writable store. Makes the directories that are missing.
  /// An entry that has the new name is replaced.
  /// Errors: those of `remove()`; not_supported (between stores).
  void rename(std::string_view from, std::string_view to, const io_options& options = {},
              std::error_code& ec = throws);
  request start_rename(std::string_view from, std::string_view to, const io_options& options = {});
  /// Makes an empty directory in a writable store, and the directories above it that are missing.
  /// Errors: those of `remove()`; already_exists (a file or directory has the name), no_space,
  /// not_supported (it was published by itself; the server's library is too old).
  void make_directory(std::string_view name, const io_options& options = {},
                      std::error_code& ec = throws);
  request start_make_directory(std::string_view name, const io_options& options = {});
  /// Makes a file of a writable store `size` bytes long. Added bytes are zero.
  /// Errors: those of `remove()`; no_space, not_supported (a directory).
  void resize(std::string_view name, std::uint64_t size, const io_options& options = {},
              std::error_code& ec = throws);
  request start_resize(std::string_view name, std::uint64_t size, const io_options& options = {});
  /// Makes a file that this client writes `size` bytes long, after everything written through
  /// `file` before.
  /// Errors: that of a failed write; no_space, permission_denied (it was opened for reading),
  /// no_such_region (not a file of a store that this client has open), busy (another handle writes
  /// it, or it is being committed).
  void resize(remote_region& file, std::uint64_t size, const io_options& options = {},
              std::error_code& ec = throws);
  request start_resize(remote_region& file, std::uint64_t size, const io_options& options = {});

  /// Returns no error while the connection is usable, and `closed` after `close()`. Otherwise
  /// returns why the connection failed.
  std::error_code status() const noexcept;
  /// Returns the server's URL; empty for a connection by worker address.
  const url& server() const noexcept;
  /// Returns the version of the server's library.
  std::string server_version() const;
  /// Returns who this client is to the server, as `to_string(peer_identity)`; empty of older ones.
  std::string identity() const;
  /// Returns the transports in use as "transport/device", as UCX names them.
  std::vector<std::string> transports() const;
  client_statistics statistics() const;

  /// Returns the worker that drives the connection. The modes `caller` (between calls) and
  /// `external` need it. Lifetime: the client's.
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
  std::shared_ptr<detail::client_core> core_;
};

}  // namespace ucx
