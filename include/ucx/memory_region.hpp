// Memory that peers may reach, and their notifications.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <system_error>

#include "ucx/access.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/context.hpp"
#include "ucx/error.hpp"
#include "ucx/memory_place.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/request.hpp"
#include "ucx/socket_address.hpp"
#include "ucx/version.hpp"

struct ucp_mem;  ///< UCX's type: `ucp_mem_h` is a pointer to it.

namespace ucx {

/// The message of a writer to the owner of a region, sent when its writes were in place.
struct notification {
  std::uint64_t value = 0;       ///< The writer's number, with a meaning that both agreed on.
  std::uint64_t connection = 0;  ///< Tells the connections of the owner's workers apart.
  socket_address peer = {};      ///< The writer's address; empty where there is none.
};

/// Called for each notification of a region, on the thread that drives the worker over which it
/// came. It must not block.
using notification_handler = move_only_handler<const notification&>;

namespace detail {
class exposed_region;
}

class endpoint;
class worker;

/// Local memory that peers may reach: the caller's, or memory that the region allocates. Every
/// worker of the region's context (with `feature::am`) serves it to each peer that has its
/// `descriptor()`.
/// Threads: sharing one object is safe, but for `close()`, the destructor and moves.
class [[nodiscard]] UCXIO_EXPORT memory_region {
 public:
  /// Exposes the caller's memory for reading and, as `granted` says, writing. It may be a CUDA
  /// device's, or managed (`place_of`). Then the CUDA driver copies it, and peers' accesses go by
  /// message. `expected` says where it has to be. Without a value it may be anywhere; a device of
  /// -1 is any device.
  /// Lifetime: `bytes`, until `close()` or the destructor returns.
  /// Errors: no_lockable_memory and io_error (RDMA hardware can not register it, and nothing less
  /// will do), no_memory, invalid_argument (also for memory that is not where it is expected); for
  /// a device's memory feature_disabled (the context was made without
  /// `feature::am`), not_supported, io_error.
  memory_region(const context& parent, std::span<std::byte> bytes, access granted,
                const std::optional<memory_place>& expected = std::nullopt,
                std::error_code& ec = throws);

  /// Exposes the caller's memory for reading.
  /// Lifetime: `bytes`, until `close()` or the destructor returns.
  /// Errors: as above. Over RDMA hardware, memory that the process can not write, such as
  /// constants, goes by message (`docs/reference/regions.md`, "RDMA hardware").
  memory_region(const context& parent, std::span<const std::byte> bytes,
                std::error_code& ec = throws);

  /// A container that dies with the call can not be exposed: deleted.
  template <std::ranges::range Range, class... Rest>
  requires(!std::ranges::borrowed_range<Range>)
      memory_region(const context& parent, Range&& bytes, Rest&&... rest)
  = delete;

  /// Allocates `size` zeroed bytes at `place`, the host's unless it says otherwise, and exposes
  /// them. `close()` frees them. Peers of the same host and user map those of the host that they
  /// may read (`context_options::share_memory`). On a context of one host these lie in UCX's shared
  /// memory. Pinned memory (`cuda_pinned`) is the host's, which devices copy fastest. Peers of the
  /// host read it in place, and do not map it.
  /// Errors: no_memory; no_shared_memory (a context of one host); for another place not_supported
  /// (no CUDA driver, no such device, or a kind that can not be allocated), io_error (the
  /// driver's), timed_out (the device has not set them to zero within five seconds: they are given
  /// back when it goes on), busy (no thread can be started to wait for it).
  /// Cost: commits all pages of the host: 64 MiB take 20-200 ms. One file descriptor.
  static memory_region allocate(const context& parent, std::size_t size, access granted,
                                const memory_place& place = {}, std::error_code& ec = throws);

  /// Exposes memory that the program has registered with UCX's context of `parent`, all of it.
  /// Lifetime: the registration is the program's, and has to stay until `close()` or the destructor
  /// returns.
  /// Errors: invalid_argument (null, or none of UCX's), feature_disabled (a context without
  /// `feature::rma`), not_supported (memory of a device), no_memory.
  static memory_region adopt(const context& parent, ucp_mem* registered, access granted,
                             std::error_code& ec = throws);

  memory_region(memory_region&& other) noexcept;
  memory_region& operator=(memory_region&& other) noexcept;
  /// Closes, within the `heartbeat_timeout` of the workers that serve it.
  ~memory_region();

  /// Returns the exposed bytes. For a device's memory it tells only where they are.
  std::span<std::byte> bytes() const noexcept;
  std::size_t size() const noexcept;
  access granted() const noexcept;
  /// Returns kind and device; pinned memory is the host's in descriptors.
  memory_place place() const noexcept;

  /// Returns the descriptor that a peer needs to reach the region.
  remote_descriptor descriptor() const;

  /// Passes the file that allocated memory is in to the peer, over a Unix socket. The peer's next
  /// `remote_region` of the `descriptor()` maps it, with the rights `granted()`, whatever the
  /// system says of the two processes. Elsewhere a peer maps memory of processes that it may look
  /// at. Servers do that for names. Call it before the peer is sent the descriptor, once for each
  /// `remote_region`. An acceptor keeps 8 files that it has not used, an initiator 128.
  /// Returns whether it was passed: not over other connections, and not of other memory.
  /// Cost: a message, no wait.
  bool pass_to(const endpoint& peer) const;

  // A peer that may write can tell the owner that its writes are in place:
  // `remote_region::start_notify`. The region remembers 1024 notifications that were not taken. A
  // peer that sends a further one gets `busy`.

  /// Calls `handler` for every later notification, and for those that wait already, one at a time.
  /// An empty handler ends that. When this returns, the previous handler neither runs nor will run,
  /// unless it made this call. `handler` runs without any lock of the library.
  /// Lifetime: the objects that `handler` refers to, until it is replaced or the region closed.
  /// Errors: closed (a region that was moved from, or closed).
  void on_notify(notification_handler handler, std::error_code& ec = throws);

  /// Waits for one notification, and takes it. Not while there is a handler. The request belongs to
  /// the worker `driven`. The notification may come over any worker of the region's context.
  /// Completes: when `into` holds it.
  /// Lifetime: `into`, until the request is done.
  /// Errors: timed_out, canceled; closed, when the region is.
  request start_wait_notify(const worker& driven, notification& into,
                            const io_options& options = {});
  notification wait_notify(const worker& driven, const io_options& options = {},
                           std::error_code& ec = throws);

  /// Takes the oldest notification that was not taken, if there is one, without waiting.
  std::optional<notification> take_notification();

  /// Withdraws the region: later accesses by message fail at the peer with `errc::revoked`. Returns
  /// when no answer of this process reads the memory any more. Over UCX a peer that does not take
  /// its answer within `heartbeat_timeout` is dropped. Inside a handler the call can not wait: such
  /// peers of that handler's worker are dropped at once. RDMA hardware may go on serving peers. For
  /// it, mapped memory and sockets see `docs/reference/regions.md`, "Withdrawal".
  /// Threads: other threads may use the workers that serve it meanwhile. No handler of a worker
  /// that only one thread may use runs here.
  void close() noexcept;

  /// Returns UCX's registration with the region's context, for calls of UCX's API (`memh`); null
  /// where UCX has none. The caller must not unmap it.
  /// Lifetime: until `close()` begins.
  ucp_mem* native_handle() const noexcept;

#if UCXIO_OLD_NAMES
  [[deprecated("use place().kind")]] memory_kind kind() const noexcept { return place().kind; }
  [[deprecated("a place stands before the error code")]] memory_region(const context& parent,
                                                                       std::span<std::byte> bytes,
                                                                       access granted,
                                                                       std::error_code& ec)
      : memory_region(parent, bytes, granted, std::nullopt, ec) {}
  [[deprecated("write memory_place{kind, device}")]] memory_region(
      const context& parent, std::span<std::byte> bytes, access granted,
      const detail::braced_place& expected, std::error_code& ec = throws)
      : memory_region(parent, bytes, granted, std::optional<memory_place>(expected), ec) {}
  [[deprecated("a place stands before the error code")]] static memory_region allocate(
      const context& parent, std::size_t size, access granted, std::error_code& ec) {
    return allocate(parent, size, granted, {}, ec);
  }
  [[deprecated("the error code comes last")]] notification wait_notify(
      const worker& driven, std::error_code& ec, const io_options& options = {}) {
    return wait_notify(driven, options, ec);
  }
#endif

 private:
  friend struct detail::core_access;
  memory_region() noexcept = default;
  std::shared_ptr<detail::exposed_region> core_;
};

}  // namespace ucx
