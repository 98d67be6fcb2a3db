#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ucx/access.hpp"
#include "ucx/export.hpp"

namespace ucx {

namespace detail {
class published;
struct core_access;
}  // namespace detail

/// One name of a server's catalogue, or a store, published while this object lives.
/// Threads: as memory_region's.
class [[nodiscard]] UCXIO_EXPORT publication {
 public:
  /// Makes a publication of nothing.
  publication() noexcept = default;
  publication(publication&& other) noexcept;
  publication& operator=(publication&& other) noexcept;
  /// Closes.
  ~publication();

  /// Returns the name; of a store, its prefix.
  const std::string& name() const noexcept;
  std::uint64_t size() const noexcept;
  access granted() const noexcept;
  /// Returns the published memory; empty for files and stores, and once it is closed.
  std::span<std::byte> bytes() const noexcept;
  /// Returns the name's URL, or an empty text where the server does not listen.
  /// Errors: forked_child.
  std::string url() const;

  /// Returns whether peers can still open it.
  bool is_open() const noexcept;

  /// Withdraws the name. Clients that have it open are told, and their accesses fail with
  /// `errc::revoked`. Returns when no answer of ours reads the memory any more; a client that does
  /// not take its answer within the worker's `heartbeat_timeout` is dropped. Idempotent.
  void close() noexcept;

 private:
  friend struct detail::core_access;
  std::shared_ptr<detail::published> core_;
};

}  // namespace ucx
