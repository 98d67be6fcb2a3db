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
/// Threads: as for `memory_region`.
class [[nodiscard]] UCXIO_EXPORT publication {
 public:
  /// Makes an empty publication.
  publication() noexcept = default;
  publication(publication&& other) noexcept;
  publication& operator=(publication&& other) noexcept;
  /// Closes.
  ~publication();

  /// Returns the name; for a store, its prefix.
  const std::string& name() const noexcept;
  std::uint64_t size() const noexcept;
  access granted() const noexcept;
  /// Returns the published memory. It is empty for files and stores, and after `close()`.
  std::span<std::byte> bytes() const noexcept;
  /// Returns the name's URL, or an empty text where the server does not listen.
  /// Errors: forked_child.
  std::string url() const;

  /// Returns whether peers can still open the name.
  bool is_open() const noexcept;

  /// Withdraws the name. Clients that have it open are told, and their accesses fail with
  /// `errc::revoked`. Returns when no answer of this process reads the memory any more. A client
  /// that does not take its answer within the worker's `heartbeat_timeout` is dropped. For RDMA
  /// hardware and other ways see `memory_region::close()`. Idempotent.
  void close() noexcept;

 private:
  friend struct detail::core_access;
  std::shared_ptr<detail::published> core_;
};

}  // namespace ucx
