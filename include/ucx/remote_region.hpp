#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>

#include "ucx/access.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/export.hpp"
#include "ucx/io_options.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/request.hpp"
#include "ucx/way.hpp"

namespace ucx {

namespace detail {
class remote_region_core;
class write_tracker;
}  // namespace detail

/// How a region is opened.
struct remote_region_options {
  /// How the bytes move; the environment's `UCXIO_WAY` (message, rma) wins over `automatic`.
  ucx::way way = ucx::way::automatic;
};

/// A peer's region, reachable. Handles are cheap; `share()` makes another one to the same region.
/// What was started keeps the connection's core alive, so endpoint and handle may be dropped.
/// Threads: as the worker's.
class UCXIO_EXPORT remote_region {
 public:
  /// Makes the peer's region reachable over `connection`. Sends nothing: what only the owner can
  /// know (stale_region, revoked, no_such_region) shows with the first access.
  /// Errors: not_supported (the way is not real on these transports), bad_descriptor, closed,
  /// connection_reset.
  remote_region(const endpoint& connection, const remote_descriptor& descriptor,
                const remote_region_options& options = {});
  remote_region(const endpoint& connection, const remote_descriptor& descriptor,
                const remote_region_options& options, std::error_code& ec);

  remote_region(remote_region&& other) noexcept;
  remote_region& operator=(remote_region&& other) noexcept;
  /// Lets go of the region. Unflushed writes go on, unreported: `flush()` first.
  ~remote_region();

  /// Returns another handle to the same region, whose `flush()` covers its own writes only.
  remote_region share() const;

  std::uint64_t size() const noexcept;
  access granted() const noexcept;
  memory_kind kind() const noexcept;
  /// Returns how the bytes move.
  ucx::way way() const noexcept;

  /// Reads `into.size()` bytes at `offset` of the peer's region into `into`.
  /// Completes: when `into` is filled.    Lifetime: `into`, until the request is done.
  /// Errors: out_of_range, permission_denied before anything is sent; connection_reset, timed_out,
  /// canceled, stale_region, revoked, no_such_region, closed from wait(). After timed_out the
  /// region is usable.    Cost: one round trip, at most one copy, no allocation after warm-up.
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
  /// the region is usable, unless bytes were moving: then the connection is dropped.
  request start_write_at(std::uint64_t offset, std::span<const std::byte> from,
                         const io_options& options = {});
  /// Writes, and returns when `from` can be reused.
  void write_at(std::uint64_t offset, std::span<const std::byte> from,
                const io_options& options = {});
  void write_at(std::uint64_t offset, std::span<const std::byte> from, std::error_code& ec,
                const io_options& options = {});

  /// Completes when every write started earlier through this handle is visible at the peer.
  /// Errors: the first failure of such a write, once; then the handle starts afresh.
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

  /// Closes the region for every handle that shares it: what is in flight is canceled, later calls
  /// fail with `errc::closed`. Idempotent.
  void close() noexcept;

  /// Returns no error while the region is usable, else `closed` or the connection's failure.
  std::error_code status() const noexcept;

  /// Returns peer, region and way in words, as they stand in error texts.
  std::string description() const;

 private:
  friend struct detail::core_access;
  remote_region() noexcept = default;
  std::shared_ptr<detail::remote_region_core> core_;
  std::shared_ptr<detail::write_tracker> tracker_;
};

}  // namespace ucx
