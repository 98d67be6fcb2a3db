#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <system_error>

#include "ucx/access.hpp"
#include "ucx/context.hpp"
#include "ucx/export.hpp"
#include "ucx/memory_kind.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx {

namespace detail {
class region_core;
}

/// Local memory that peers may reach: the caller's, or allocated by us. Every worker of its context
/// (with `feature::am`) serves it to whoever has its `descriptor()`.
/// Threads: sharing one object is safe, but for `close()`, the destructor and moves.
class [[nodiscard]] UCXIO_EXPORT memory_region {
 public:
  /// Exposes the caller's memory for reading and, as `granted` says, writing.
  /// Lifetime: `bytes`, until `close()` or the destructor returns.
  /// Errors: no_lockable_memory, no_memory, invalid_argument.
  memory_region(const context& parent, std::span<std::byte> bytes, access granted);
  memory_region(const context& parent, std::span<std::byte> bytes, access granted,
                std::error_code& ec);

  /// Exposes the caller's memory for reading.
  memory_region(const context& parent, std::span<const std::byte> bytes);
  memory_region(const context& parent, std::span<const std::byte> bytes, std::error_code& ec);

  /// Allocates `size` zeroed bytes and exposes them; on a context with shared-memory transports
  /// they lie in shared memory, which peers on the host reach without the owner's help. Errors:
  /// no_shared_memory, no_memory.    Cost: commits all pages: 64 MiB take 20-200 ms.
  static memory_region allocate(const context& parent, std::size_t size, access granted);
  static memory_region allocate(const context& parent, std::size_t size, access granted,
                                std::error_code& ec);

  memory_region(memory_region&& other) noexcept;
  memory_region& operator=(memory_region&& other) noexcept;
  /// Closes; bounded by the `heartbeat_timeout` of the workers that serve it.
  ~memory_region();

  /// Returns the exposed bytes.
  std::span<std::byte> bytes() const noexcept;
  std::size_t size() const noexcept;
  access granted() const noexcept;
  memory_kind kind() const noexcept;

  /// Returns what a peer needs to reach the region.
  remote_descriptor descriptor() const;

  /// Withdraws the region: later accesses by message fail at the peer with `errc::revoked`. Returns
  /// when no answer of ours reads the memory any more; a peer that does not take its answer within
  /// `heartbeat_timeout` is dropped. One-sided transports: see `docs/conventions.md`.
  void close() noexcept;

 private:
  friend struct detail::core_access;
  memory_region() noexcept = default;
  std::shared_ptr<detail::region_core> core_;
};

}  // namespace ucx
