// A peer's region, and the pieces of batches.
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
#include "ucx/content_digest.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/old_option.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/request.hpp"
#include "ucx/version.hpp"

struct ucp_rkey;  ///< UCX's type: `ucp_rkey_h` is a pointer to it.

namespace ucx {

/// One piece of a batch of reads: the bytes from `offset` of the region on fill `into`.
struct read_piece {
  std::uint64_t offset = 0;
  std::span<std::byte> into = {};
};

/// One piece of a batch of writes: `from` goes to `offset` of the region.
struct write_piece {
  std::uint64_t offset = 0;
  std::span<const std::byte> from = {};
};

namespace detail {
class posted_operations;
class region_source;
class remote_region_core;
class write_tracker;
}  // namespace detail

/// The options of a region.
struct remote_region_options {
  /// For one version: `transfer_method`.
  detail::old_option<ucx::transfer_method> way = {};
  /// How the bytes move. With `automatic`, the environment's `UCXIO_TRANSFER_METHOD` (message, rma,
  /// cma, cuda_ipc, mapped) decides, if it is set.
  ucx::transfer_method transfer_method = way.value_or(ucx::transfer_method::automatic);
  /// For foreign regions (`remote_descriptor::of_key`): also allows RMA that UCX emulates over TCP,
  /// and writes by CMA. A peer that stops holds up emulated accesses until their deadline. A peer
  /// can not take its memory back from a writer that stops during a write by CMA.
  bool trusted_peer = false;
};

/// A peer's region that this process can reach. Handles are cheap: `share()` makes another one to
/// one region. Operations that were started keep the connection's core alive: endpoint and handle
/// may be dropped.
/// Threads: as the worker's.
class UCXIO_EXPORT remote_region {
 public:
  /// Makes a handle of no region. Its calls fail with `closed`.
  remote_region() noexcept = default;
  /// Makes the peer's region reachable over `connection`. Sends nothing. Errors that only the owner
  /// can know (stale_region, revoked, no_such_region) show with the first access.
  /// Errors: not_supported (these transports have no such method), feature_disabled (the context
  /// lacks what it needs), bad_descriptor (UCX refuses the key, and only RMA was asked for),
  /// bad_configuration (`UCXIO_TRANSFER_METHOD`), closed, the connection's.
  remote_region(const endpoint& connection, const remote_descriptor& descriptor,
                const remote_region_options& options = {}, std::error_code& ec = throws);

  remote_region(remote_region&& other) noexcept;
  remote_region& operator=(remote_region&& other) noexcept;
  /// Lets go of the region. Unflushed writes go on, and their failures are not reported: call
  /// `flush()` first. Posted operations are given up, and waited for as by the destructor of
  /// `request`.
  ~remote_region();

  /// Returns another handle to this region. Its `flush()` covers its own writes only.
  remote_region share() const;

  /// Returns how many bytes can be read. For a file: its size when it was opened or measured, and
  /// the bytes written through handles of this region since.
  std::uint64_t size() const noexcept;
  /// Returns where a write has to end. It is `size()`, or more for a file of a store that was
  /// opened for writing, which grows. A write beyond it fails with errc::no_space.
  std::uint64_t max_size() const noexcept;
  access granted() const noexcept;
  memory_kind kind() const noexcept;
  /// Returns how the bytes move. For memory of a device it may change: the driver's permissions are
  /// known after the first bytes have moved.
  ucx::transfer_method transfer_method() const noexcept;
  /// Returns the identity of the content when the region was opened, or measured last.
  content_id content() const noexcept;
  /// Returns whether `client::refresh_size` can tell the present length. It can for a published
  /// file, by itself or in a store, unless the server's library is too old.
  bool can_refresh_size() const noexcept;

  /// Returns `length` bytes at `offset` in place: the owner's memory itself, which the owner and
  /// others may change at any time. Sends nothing and copies nothing. It has to be `mapped`.
  /// Lifetime: that of the last handle to the region, streams over it included. The connection may
  /// end. If the owner withdraws the region, or dies, the last bytes stay.
  /// Errors: not_supported (it is not mapped: the text says why), out_of_range, permission_denied,
  /// revoked, closed, the connection's.
  std::span<const std::byte> view(std::uint64_t offset, std::size_t length,
                                  std::error_code& ec = throws) const;
  /// Returns `length` bytes at `offset` in place, like `view`, to write them. Every process sees a
  /// written byte at once. Order between processes is up to the program (atomics, `notify`).
  std::span<std::byte> writable_view(std::uint64_t offset, std::size_t length,
                                     std::error_code& ec = throws) const;
  /// Returns why the transfer method is not `wanted`, as a text for people, as far as is
  /// known by now. Empty where they do, and for `automatic`. Why there is no view:
  /// `why_not(transfer_method::mapped)`.
  std::string why_not(ucx::transfer_method wanted) const;

  /// Reads `into.size()` bytes at `offset` of the peer's region into `into`.
  /// Completes: when `into` is filled.
  /// Lifetime: `into`, until the request is done.
  /// Errors: out_of_range, permission_denied before anything is sent; connection_reset, timed_out,
  /// canceled, stale_region, revoked, no_such_region, closed from wait(). After timed_out or
  /// canceled the region stays usable, but not by RMA where UCX watches the connection: that is
  /// dropped.
  /// Cost: one round trip, at most one copy, no allocation after warm-up.
  request start_read_at(std::uint64_t offset, std::span<std::byte> into,
                        const io_options& options = {});
  /// Reads, and returns when `into` is filled.
  void read_at(std::uint64_t offset, std::span<std::byte> into, const io_options& options = {},
               std::error_code& ec = throws);

  /// Writes `from` at `offset` of the peer's region.
  /// Completes: when `from` can be reused. The bytes are visible at the peer only after `flush()`.
  /// Lifetime: `from`, until the request is done.
  /// Errors: those of `start_read_at`, but `flush()` reports a refusal of the owner. After
  /// timed_out or canceled the region stays usable, unless bytes were moving by RMA, or did not
  /// leave within the worker's `heartbeat_timeout`. In those cases a connection that UCX watches is
  /// dropped.
  request start_write_at(std::uint64_t offset, std::span<const std::byte> from,
                         const io_options& options = {});
  /// Writes, and returns when `from` can be reused.
  void write_at(std::uint64_t offset, std::span<const std::byte> from,
                const io_options& options = {}, std::error_code& ec = throws);

  /// Posts a read, or a write, without a request. The next `flush` of this handle covers it, and
  /// names the first failed one in its error text. 1024 may be in flight. A further call waits,
  /// within the operation's time.
  /// Lifetime: `into` or `from`, until such a flush has ended, or the handle is gone.
  /// Errors: those of `start_read_at` and `start_write_at` before anything is sent; timed_out
  /// (there was no room); canceled (a handler destroyed this object meanwhile); busy, where it
  /// would have to wait inside a completion callback.
  void post_read_at(std::uint64_t offset, std::span<std::byte> into, const io_options& options = {},
                    std::error_code& ec = throws);
  void post_write_at(std::uint64_t offset, std::span<const std::byte> from,
                     const io_options& options = {}, std::error_code& ec = throws);

  /// Reads, or writes, many pieces as one operation. By message, small pieces share messages.
  /// Pieces of writes that overlap land in either order.
  /// Completes: when all pieces are done, as for `start_read_at` and `start_write_at`.
  /// Lifetime: the pieces' bytes, until the request is done; the list itself, during the call.
  /// Errors: those of `start_read_at` and `start_write_at`. Nothing is sent if any piece is out of
  /// range. The first failure counts; other pieces may have been moved.
  request start_read_batch(std::span<const read_piece> pieces, const io_options& options = {});
  void read_batch(std::span<const read_piece> pieces, const io_options& options = {},
                  std::error_code& ec = throws);
  request start_write_batch(std::span<const write_piece> pieces, const io_options& options = {});
  void write_batch(std::span<const write_piece> pieces, const io_options& options = {},
                   std::error_code& ec = throws);

  /// Performs `wanted` on the number at `offset`. `remote_atomic` does it with a type.
  /// Completes: when the owner's processor has done it, and `previous` (empty, or as wide as the
  /// number) has the old number.
  /// Lifetime: `previous`, until the request is done.
  /// Errors: invalid_argument (another width than 4 or 8, a value that is no operation, `previous`
  /// of another size, a number that is not aligned in the owner's memory), out_of_range,
  /// permission_denied (fetching needs to read, too), not_supported (a file, memory of a device),
  /// feature_disabled: nothing was done; else those of `start_read_at`: the access was done once or
  /// not at all.
  request start_atomic(std::uint64_t offset, const atomic_access& wanted,
                       std::span<std::byte> previous = {}, const io_options& options = {});

  /// Flushes, then tells the owner `value`. The owner's handler or wait (`memory_region`) then
  /// finds in place every write that was started earlier through this handle.
  /// Completes: when the owner has the notification. It may not have handled it.
  /// Errors: those of the flush, and then the owner is not told; permission_denied (to write),
  /// revoked, busy (the owner has 1024 that it did not look at: the writes are visible, notify
  /// again), feature_disabled (a context without `feature::am`).
  /// Cost: one round trip after that of the flush.
  request start_notify(std::uint64_t value, const io_options& options = {});
  void notify(std::uint64_t value, const io_options& options = {}, std::error_code& ec = throws);

  /// Completes when every write that was started earlier through this handle is visible at the
  /// peer, and every operation posted through it has ended.
  /// Errors: the first failure of such an operation, once. After that the handle starts afresh.
  /// Cost: nothing when the writes are known to be visible already, else up to one round trip.
  request start_flush(const io_options& options = {});
  void flush(const io_options& options = {}, std::error_code& ec = throws);

  /// Returns the offset of the first byte that is not known to be visible at the peer; empty when
  /// all are. The order is that of the writes through this handle. After a failed flush it is the
  /// place to write again from, until the next write.
  std::optional<std::uint64_t> first_unconfirmed() const;

  /// Closes the region for every handle that shares it. Operations in flight by message are
  /// canceled; those by RMA go on. Later calls fail with `errc::closed`. Idempotent.
  void close() noexcept;

  /// Returns no error while the region is usable, else `closed` or the connection's failure.
  std::error_code status() const noexcept;

  /// Returns how many of the bytes are in huge pages of the system, as far as this process can
  /// tell. It can for memory that is mapped here, or that it reads in place. Empty otherwise. For
  /// people: counting takes milliseconds where there are many mappings.
  std::optional<std::uint64_t> bytes_in_huge_pages() const;

  /// Returns UCX's key to the region, for calls of UCX's API over `endpoint::native_handle()`; null
  /// unless the transfer method is `rma`. The caller must not destroy it.
  /// Lifetime: until the last handle to the region, or the connection, is gone.
  ucp_rkey* native_key() const noexcept;

  /// Returns peer, region and transfer method in words, as error texts have them.
  std::string description() const;

#if UCXIO_OLD_NAMES
#include "ucx/old_names/remote_region.ipp"
#endif

 private:
  friend struct detail::core_access;
  friend class detail::region_source;
  /// Returns the time by the worker's clock.
  std::chrono::steady_clock::time_point now() const noexcept;
  /// Reads into memory that `keeper` keeps: the transport may write there behind the end of a read
  /// that failed, and keeps it until then. With null, into memory of the caller's.
  request start_read_kept(std::uint64_t offset, std::span<std::byte> into,
                          const std::shared_ptr<const void>& keeper, const io_options& options);
  /// Returns whether a read by RMA that is given up ends at once, and harms no other.
  bool leaves_reads_at_once() const noexcept;
  void make_books();
  void drop_posted() noexcept;
  std::shared_ptr<detail::remote_region_core> core_;
  std::shared_ptr<detail::write_tracker> tracker_;
  std::shared_ptr<detail::posted_operations> posted_;
};

}  // namespace ucx
