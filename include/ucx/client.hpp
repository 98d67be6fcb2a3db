#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ucx/access.hpp"
#include "ucx/content_digest.hpp"
#include "ucx/context.hpp"
#include "ucx/create_options.hpp"
#include "ucx/entry.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/staging_statistics.hpp"
#include "ucx/url.hpp"
#include "ucx/worker.hpp"
#include "ucx/worker_address.hpp"

namespace ucx {

class endpoint;

namespace detail {
class client_core;
}

/// How a client is made.
struct client_options {
  /// UCX's transports, devices and configuration. Unless it names devices, they are limited to the
  /// interface that leads to the server and, unless that is loopback, the machine's RDMA devices.
  context_options context = {};
  /// Progress and deadlines. `automatic` is: the caller's calls drive it, from any thread.
  worker_options worker = {};
};

/// What a client has done so far.
struct client_statistics {
  std::uint64_t opens = 0;          ///< Regions that were opened.
  std::uint64_t requests = 0;       ///< Questions to the server's catalogue.
  std::uint64_t failures = 0;       ///< Those that were answered with an error, or not at all.
  staging_statistics staging = {};  ///< Of memory of devices on this side, but for its lanes.
};

/// A connection to one server: lists, describes and opens what it publishes. One connection serves
/// any number of regions and streams, which keep it open.
/// Threads: sharing one object is safe, but for the destructor, `close()` and moves; and so is what
/// was opened through it, one thread at a time for each region or stream.
class UCXIO_EXPORT client {
 public:
  /// Connects to the server of a URL (its name is ignored), and returns when it has answered. All
  /// addresses of the host are tried in the resolver's order, within one connect deadline.
  /// Errors: bad_url, host_not_found, connection_refused (nobody listens there, or who does is no
  /// server), unreachable, timed_out (or something else than ucxio listens there),
  /// version_mismatch, protocol_error, busy, too_many_files.
  explicit client(std::string_view server, const client_options& options = {});
  client(std::string_view server, const client_options& options, std::error_code& ec);
  explicit client(const url& server, const client_options& options = {});
  client(const url& server, const client_options& options, std::error_code& ec);

  /// Connects by worker address, without any IP address.
  explicit client(const worker_address& server, const client_options& options = {});
  client(const worker_address& server, const client_options& options, std::error_code& ec);

  /// Returns the client that streams opened by URL share: one a server within the process, made
  /// when there is none. When its last user has gone it lingers. Errors: as the constructor's;
  /// forked_child.
  static client shared(const url& server);
  static client shared(const url& server, std::error_code& ec);
  /// Sets how long shared clients linger, so that who comes next finds a connection: 10 s unless
  /// `UCXIO_LINGER` says how many seconds. At most 16 do; the one that has waited longest goes
  /// first. Zero: none lingers, and those that do go before this returns.
  static void linger(std::chrono::nanoseconds longest);

  client(client&& other) noexcept;
  client& operator=(client&& other) noexcept;
  /// Lets go of the connection, which lives on while regions and streams need it.
  ~client();

  /// Returns another handle to the same connection.
  client share() const;

  /// Returns another handle to the same connection, or, where that is lost, to one that takes its
  /// place: it is made as this one was, and shared by all that ask this client for it.
  /// Who asks while another one connects gets that one's outcome. Errors: as the constructor's;
  /// closed (by `close()`, before the loss or after it).
  client reconnected() const;
  client reconnected(std::error_code& ec) const;

  /// Returns a further connection to the same server, the `number`th: on a worker of its own with a
  /// thread that sleeps. It is made as this one was when nobody has it, and shared by all that ask
  /// this client for it, until the last of them lets go; 0 is this one. Errors: as the
  /// constructor's; not_supported (a client that was made on a context of the caller's), closed.
  client lane(std::size_t number) const;
  client lane(std::size_t number, std::error_code& ec) const;

  /// Returns everything that is published, by name. Errors: no_memory (it takes more than 512 MiB:
  /// some million names; `visit_names` does without). Cost: a round trip for each some hundred
  /// names.
  std::vector<entry> list(const io_options& options = {});
  std::vector<entry> list(std::error_code& ec, const io_options& options = {});

  /// Returns what is published as `name`. Errors: no_such_name; the connection's.
  entry stat(std::string_view name, const io_options& options = {});
  entry stat(std::string_view name, std::error_code& ec, const io_options& options = {});

  /// Opens `name` for what `wanted` says.
  /// Errors: no_such_name, permission_denied, bad_name; connection_reset, timed_out, closed.
  /// Cost: one round trip.
  remote_region open(std::string_view name, access wanted = access::read,
                     const io_options& options = {});
  remote_region open(std::string_view name, access wanted, std::error_code& ec,
                     const io_options& options = {});

  /// Returns what lies directly in a directory of a store ("" for the root of one without a
  /// prefix), by name: files, and directories. Errors: no_such_name, not_supported (a file; a
  /// server from before there were stores), permission_denied; no_memory, as list.
  std::vector<entry> list_directory(std::string_view directory, const io_options& options = {});
  std::vector<entry> list_directory(std::string_view directory, std::error_code& ec,
                                    const io_options& options = {});

  /// Opens a file of a writable store that does not have to exist, to be written: it grows as it is
  /// written. What replaces a file, or is new, has no name until `commit()`; it is thrown away
  /// where that never comes. One client writes a file at a time. Errors: no_such_name (no store has
  /// such names), bad_name, permission_denied (the store is not writable; the system), busy
  /// (somebody writes it), already_exists (`fresh`), too_many_of_store, too_many_of_client,
  /// too_many_writers, too_many_files, not_supported (a directory; a name that was published by
  /// itself, but for `overwrite`; a server from before there were stores), no_space. Cost: one
  /// round trip.
  remote_region create(std::string_view name, const create_options& how = {},
                       const io_options& options = {});
  remote_region create(std::string_view name, const create_options& how, std::error_code& ec,
                       const io_options& options = {});

  /// Gives a file its name that `create` opened, with the directories that are missing, when every
  /// write through `file` is in it; returns what it is then. With `durable` it is on the device,
  /// and its name too. What is written later goes into the file that has the name. Errors: what a
  /// write failed with, now and whenever it is asked for again, or what the store says: the file is
  /// then thrown away; no_space, already_exists (`fresh`, and somebody was faster), not_supported
  /// (a directory has the name; another file system), permission_denied (it was opened for
  /// reading), no_such_region (not a file that this client has open); busy (it is being committed,
  /// or the server is short of threads): the file is kept.
  entry commit(remote_region& file, bool durable = false, const io_options& options = {});
  entry commit(remote_region& file, bool durable, std::error_code& ec,
               const io_options& options = {});

  /// The same for a file that is done with: when this returns, its name is free for other writers.
  /// Closes `file`, also for who shares it, where it goes well; else it stays open, and can be
  /// committed again where the file was not thrown away (busy; io_error behind the name).
  entry commit(remote_region&& file, bool durable = false, const io_options& options = {});
  entry commit(remote_region&& file, bool durable, std::error_code& ec,
               const io_options& options = {});

  /// Asks how long a file is by now that this client opened, and lets `file` reach so far; returns
  /// when it does not have `known` bytes any more, at the latest after `wait`. What another program
  /// writes on the server's machine is noticed at once, what another machine writes to a file
  /// system that both have, within a second of that machine's telling it. Errors: not_supported
  /// (`file.measurable()` is not so), no_such_region (not of this client), revoked, busy (this
  /// client waits for 1024 already), io_error; the connection's. Cost: one round trip, and one for
  /// each half minute of waiting.
  entry measure(remote_region& file, std::uint64_t known = 0,
                std::chrono::nanoseconds wait = std::chrono::nanoseconds::zero(),
                const io_options& options = {});
  entry measure(remote_region& file, std::uint64_t known, std::chrono::nanoseconds wait,
                std::error_code& ec, const io_options& options = {});

  /// Has the owner hash what is in a file that this client opened, so that it can be compared
  /// without being fetched; what was written through `file` counts once it was flushed. What others
  /// write meanwhile is hashed or not. Errors: not_supported (memory; a server from before it
  /// hashed), invalid_argument (chunks of nothing), out_of_range, permission_denied (it was not
  /// opened for reading), content_changed (it was cut off), busy (this client asks 16 already),
  /// no_such_region (not of this client), revoked, io_error; the connection's. Cost: a round trip
  /// for each 64 MiB, and the owner's disk; a disk that gives less than 16 MiB a second may time
  /// out.
  std::vector<content_digest> digest(remote_region& file, const digest_range& wanted,
                                     const io_options& options = {});
  std::vector<content_digest> digest(remote_region& file, const digest_range& wanted,
                                     std::error_code& ec, const io_options& options = {});

  /// Removes a file, or an empty directory, of a writable store. Errors: no_such_name,
  /// permission_denied, busy (somebody writes it), already_exists (a directory that is not empty).
  void remove(std::string_view name, const io_options& options = {});
  void remove(std::string_view name, std::error_code& ec, const io_options& options = {});
  /// Renames a file or directory within a writable store, and makes the directories that are
  /// missing; what has the new name is replaced. Errors: as remove(); not_supported (between
  /// stores).
  void rename(std::string_view from, std::string_view to, const io_options& options = {});
  void rename(std::string_view from, std::string_view to, std::error_code& ec,
              const io_options& options = {});
  /// Makes a file of a writable store `size` bytes long; what is added is zero. Errors: as
  /// remove(); no_space, not_supported (a directory).
  void resize(std::string_view name, std::uint64_t size, const io_options& options = {});
  void resize(std::string_view name, std::uint64_t size, std::error_code& ec,
              const io_options& options = {});

  /// Makes a file `size` bytes long that this client writes: behind what was written through
  /// `file`. Errors: what a write failed with; no_space, permission_denied (it was opened for
  /// reading), no_such_region (not a file of a store that this client has open), busy (another
  /// handle writes it, or it is being committed).
  void resize(remote_region& file, std::uint64_t size, const io_options& options = {});
  void resize(remote_region& file, std::uint64_t size, std::error_code& ec,
              const io_options& options = {});

  /// Returns no error while the connection is usable, `closed` after `close()`, else why it failed.
  std::error_code status() const noexcept;
  /// Returns the server's URL; empty when connected by worker address.
  const url& server() const noexcept;
  /// Returns the version of the server's library.
  std::string server_version() const;
  /// Returns the transports in use as "transport/device", as UCX names them.
  std::vector<std::string> transports() const;
  client_statistics statistics() const;

  /// Returns the worker that drives the connection: for modes `caller` (between calls) and
  /// `external`. Lifetime: the client's.
  ucx::worker& worker() noexcept;
  /// Returns another handle to the connection itself: for messages to the server's program, beside
  /// what the client says. Closing it closes the client's.
  endpoint connection() const;

  /// Says goodbye and closes the connection for every handle, region and stream. Idempotent.
  void close() noexcept;

 private:
  friend struct detail::core_access;
  client() noexcept = default;
  std::shared_ptr<detail::client_core> core_;
};

}  // namespace ucx
