#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "ucx/access.hpp"
#include "ucx/atomic_access.hpp"
#include "ucx/content_id.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"
#include "ucx/region_piece.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/request.hpp"
#include "ucx/way.hpp"

namespace ucx {

namespace detail {
class posted_operations;
class region_source;
class remote_region_core;
class write_tracker;
}  // namespace detail

/// How a region is opened.
struct remote_region_options {
  /// How the bytes move. The environment's `UCXIO_WAY` (message, rma, cma, cuda_ipc, mapped)
  /// decides where this says `automatic`.
  ucx::way way = ucx::way::automatic;
};

/// A peer's region, reachable. Handles are cheap; `share()` makes another one to the same region.
/// What was started keeps the connection's core alive, so endpoint and handle may be dropped.
/// Threads: as the worker's.
class UCXIO_EXPORT remote_region {
 public:
  /// Makes the peer's region reachable over `connection`. Sends nothing: what only the owner can
  /// know (stale_region, revoked, no_such_region) shows with the first access.
  /// Errors: not_supported (the way is not real on these transports), feature_disabled (the context
  /// lacks what the way needs), bad_descriptor (UCX refuses the key, and nothing but RMA was asked
  /// for), bad_configuration (`UCXIO_WAY`), closed, the connection's.
  remote_region(const endpoint& connection, const remote_descriptor& descriptor,
                const remote_region_options& options = {});
  remote_region(const endpoint& connection, const remote_descriptor& descriptor,
                const remote_region_options& options, std::error_code& ec);

  remote_region(remote_region&& other) noexcept;
  remote_region& operator=(remote_region&& other) noexcept;
  /// Lets go of the region. Unflushed writes go on, unreported: `flush()` first. What was posted is
  /// given up, and waited for as by the destructor of `request`.
  ~remote_region();

  /// Returns another handle to the same region, whose `flush()` covers its own writes only.
  remote_region share() const;

  /// Returns how many bytes there are to read. Of a file: those that there were when it was opened,
  /// or measured, and those that were written through handles of this region since.
  std::uint64_t size() const noexcept;
  /// Returns where a write has to end: `size()`, or beyond it where the region is a file of a store
  /// that was opened for writing, which grows (errc::no_space behind it).
  std::uint64_t limit() const noexcept;
  access granted() const noexcept;
  memory_kind kind() const noexcept;
  /// Returns how the bytes move. Of memory of a device it may change: what the driver lets this
  /// process do is known when the first bytes have moved.
  ucx::way way() const noexcept;
  /// Returns what was there when it was opened, or measured last.
  content_id content() const noexcept;
  /// Returns whether `client::measure` tells how long it is by now: of a file that a server
  /// publishes, itself or in a store, unless the server's library is older than that question.
  bool measurable() const noexcept;

  /// Returns `length` bytes at `offset` where they lie in this process: the owner's memory itself,
  /// which the owner and others may change at any time. Sends nothing and copies nothing.
  /// Where the way is `mapped`.
  /// Lifetime: that of the last handle to the region, streams over it included; the connection may
  /// end. When the owner withdraws the region, or dies, what was there last stays.
  /// Errors: not_supported (it is not mapped: the text says why), out_of_range, permission_denied,
  /// revoked, closed, the connection's.
  std::span<const std::byte> view(std::uint64_t offset, std::size_t length) const;
  std::span<const std::byte> view(std::uint64_t offset, std::size_t length,
                                  std::error_code& ec) const;
  /// Returns the same for writing. What is written is there for all at once; order between
  /// processes is the program's affair (atomics, `notify`).
  std::span<std::byte> writable_view(std::uint64_t offset, std::size_t length) const;
  std::span<std::byte> writable_view(std::uint64_t offset, std::size_t length,
                                     std::error_code& ec) const;
  /// Returns why there is no view, for people; nothing where there is one.
  std::string why_not_mapped() const;
  /// Returns why this process, or its CUDA driver where the memory is a device's, does not read the
  /// memory itself where its owner has it, for people, as far as is known by now; nothing where it
  /// does, and where the way is `mapped`.
  std::string why_not_read() const;

  /// Reads `into.size()` bytes at `offset` of the peer's region into `into`.
  /// Completes: when `into` is filled.    Lifetime: `into`, until the request is done.
  /// Errors: out_of_range, permission_denied before anything is sent; connection_reset, timed_out,
  /// canceled, stale_region, revoked, no_such_region, closed from wait(). After timed_out or
  /// canceled the region is usable; not so by RMA where UCX watches the connection, which is
  /// dropped. Cost: one round trip, at most one copy, no allocation after warm-up.
  request start_read_at(std::uint64_t offset, std::span<std::byte> into,
                        const io_options& options = {});
  /// Reads, and returns when `into` is filled.
  void read_at(std::uint64_t offset, std::span<std::byte> into, const io_options& options = {});
  void read_at(std::uint64_t offset, std::span<std::byte> into, std::error_code& ec,
               const io_options& options = {});

  /// Writes `from` at `offset` of the peer's region.
  /// Completes: when `from` can be reused; it is visible at the peer only after `flush()`.
  /// Lifetime: `from`, until the request is done.
  /// Errors: as start_read_at, but what the owner refuses is reported by `flush()`. After timed_out
  /// or canceled the region is usable, unless bytes were moving by RMA, or did not get out within
  /// the worker's `heartbeat_timeout`: then a connection that UCX watches is dropped.
  request start_write_at(std::uint64_t offset, std::span<const std::byte> from,
                         const io_options& options = {});
  /// Writes, and returns when `from` can be reused.
  void write_at(std::uint64_t offset, std::span<const std::byte> from,
                const io_options& options = {});
  void write_at(std::uint64_t offset, std::span<const std::byte> from, std::error_code& ec,
                const io_options& options = {});

  /// Posts a read, or a write, without a request: the next `flush` of this handle covers it, and
  /// its error text names the first that failed. 1024 may be in flight; beyond that the call waits,
  /// within the operation's time.
  /// Lifetime: `into` or `from`, until such a flush has ended, or the handle is gone.
  /// Errors: as start_read_at and start_write_at before anything is sent; timed_out (there was no
  /// room); busy, where it would have to wait inside a completion callback.
  void post_read_at(std::uint64_t offset, std::span<std::byte> into,
                    const io_options& options = {});
  void post_read_at(std::uint64_t offset, std::span<std::byte> into, std::error_code& ec,
                    const io_options& options = {});
  void post_write_at(std::uint64_t offset, std::span<const std::byte> from,
                     const io_options& options = {});
  void post_write_at(std::uint64_t offset, std::span<const std::byte> from, std::error_code& ec,
                     const io_options& options = {});

  /// Reads, or writes, many pieces as one operation. By message small pieces share messages.
  /// Completes: as start_read_at and start_write_at, when all pieces have.
  /// Lifetime: the pieces' bytes, until the request is done; the list itself, during the call.
  /// Errors: as those; nothing is sent if any piece is out of range. The first failure counts;
  /// other pieces may have been moved. Pieces of writes that overlap land in either order.
  request start_read_batch(std::span<const read_piece> pieces, const io_options& options = {});
  void read_batch(std::span<const read_piece> pieces, const io_options& options = {});
  void read_batch(std::span<const read_piece> pieces, std::error_code& ec,
                  const io_options& options = {});
  request start_write_batch(std::span<const write_piece> pieces, const io_options& options = {});
  void write_batch(std::span<const write_piece> pieces, const io_options& options = {});
  void write_batch(std::span<const write_piece> pieces, std::error_code& ec,
                   const io_options& options = {});

  /// Performs `wanted` on the number at `offset`; see `remote_atomic`, which has a type.
  /// Completes: when the owner's processor has done it, and `previous` (empty, or as wide as the
  /// number) holds what was there before. It is done once; after an error other than those below at
  /// most once, and whether it was is not known.
  /// Lifetime: `previous`, until the request is done.
  /// Errors: invalid_argument (another width than 4 or 8, a number that is not aligned in the
  /// owner's memory), out_of_range, permission_denied (fetching needs to read, too), not_supported
  /// (a file, memory of a device), feature_disabled: nothing is done. Else as start_read_at.
  request start_atomic(std::uint64_t offset, const atomic_access& wanted,
                       std::span<std::byte> previous = {}, const io_options& options = {});

  /// Flushes, then tells the owner `value`: its handler or wait (`memory_region`) finds every write
  /// in place that was started through this handle before.
  /// Completes: when the owner has the notification, not when it has seen to it.
  /// Errors: those of the flush, and then the owner is not told; permission_denied (to write),
  /// revoked, busy (the owner has 1024 that it did not look at: the writes are visible, notify
  /// again), feature_disabled (a context without `feature::am`).
  /// Cost: one round trip behind that of the flush.
  request start_notify(std::uint64_t value, const io_options& options = {});
  void notify(std::uint64_t value, const io_options& options = {});
  void notify(std::uint64_t value, std::error_code& ec, const io_options& options = {});

  /// Completes when every write started earlier through this handle is visible at the peer, and
  /// everything posted through it has ended.
  /// Errors: the first failure of such an operation, once; then the handle starts afresh.
  /// Cost: nothing when the owner has confirmed them already, else up to one round trip.
  request start_flush(const io_options& options = {});
  void flush(const io_options& options = {});
  void flush(std::error_code& ec, const io_options& options = {});

  /// Returns the offset of the first byte, in the order of the writes through this handle, that is
  /// not known to be visible at the peer; nothing when all are. After a failed flush it names the
  /// place to write again from, until the next write.
  std::optional<std::uint64_t> first_unconfirmed() const;
  /// Returns how many bytes written through this handle the owner has not confirmed yet.
  std::uint64_t unconfirmed() const;

  /// Closes the region for every handle that shares it: what is in flight by message is canceled,
  /// by RMA it goes on; later calls fail with `errc::closed`. Idempotent.
  void close() noexcept;

  /// Returns no error while the region is usable, else `closed` or the connection's failure.
  std::error_code status() const noexcept;

  /// Returns how many of the bytes are in huge pages of the system's, as far as this process can
  /// tell: of memory that is mapped here, or that it reads where the owner has it. For people:
  /// counting takes milliseconds where there are many mappings. Else nothing.
  std::optional<std::uint64_t> bytes_in_huge_pages() const;

  /// Returns peer, region and way in words, as they stand in error texts.
  std::string description() const;

 private:
  friend struct detail::core_access;
  friend class detail::region_source;
  remote_region() noexcept = default;
  /// Returns the time by its worker's clock.
  std::chrono::steady_clock::time_point now() const noexcept;
  void make_books();
  void drop_posted() noexcept;
  std::shared_ptr<detail::remote_region_core> core_;
  std::shared_ptr<detail::write_tracker> tracker_;
  std::shared_ptr<detail::posted_operations> posted_;
};

}  // namespace ucx
