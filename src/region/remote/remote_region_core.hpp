// A peer's region, reachable over one connection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "base/result.hpp"
#include "connection/endpoint_core.hpp"
#include "region/paths/path_choice.hpp"
#include "region/paths/peer_region.hpp"
#include "region/paths/transfer_path.hpp"
#include "region/remote/message_path.hpp"
#include "region/remote/remote_extent.hpp"
#include "region/remote/write_window.hpp"
#include "ucx/access.hpp"
#include "ucx/remote_descriptor.hpp"
#include "ucx/remote_region.hpp"
#include "ucx/request.hpp"

namespace ucx::detail {

class posted_operations;
class write_tracker;

/// Shared by the handles of one region and by what they started. It says what may be asked of the
/// region; how the bytes move is its path's. Under the worker's lock, but for what never changes.
class remote_region_core final : public peer_region,
                                 public remote_key_owner,
                                 public std::enable_shared_from_this<remote_region_core> {
 public:
  /// Makes the core that a handle holds: it keeps the connection open. Operations hold the core by
  /// `shared_from_this()`, which does not, so that they end with the connection.
  static result<std::shared_ptr<remote_region_core>> make(std::shared_ptr<endpoint_core> endpoint,
                                                          const remote_descriptor& descriptor,
                                                          const remote_region_options& options);
  ~remote_region_core();
  remote_region_core(const remote_region_core&) = delete;
  remote_region_core& operator=(const remote_region_core&) = delete;

  std::error_code status() const noexcept;

  // Its parts.
  /// How its bytes move; needs no lock for what it says of itself.
  transfer_path& path() const noexcept { return *path_; }
  remote_extent& extent() noexcept { return extent_; }
  const remote_extent& extent() const noexcept { return extent_; }
  write_window& window() noexcept { return window_; }

  /// Each starts an operation; nothing is returned if it ended within the call, and `ec` says how.
  operation* start_read(std::uint64_t offset, std::span<std::byte> into, const io_options& options,
                        std::error_code& ec) {
    return start_read_kept(offset, into, nullptr, options, ec);
  }
  /// `keeper`: see `transfer_path::read_kept`. Null where the memory is the caller's.
  operation* start_read_kept(std::uint64_t offset, std::span<std::byte> into,
                             const std::shared_ptr<const void>& keeper, const io_options& options,
                             std::error_code& ec);
  operation* start_write(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                         std::span<const std::byte> from, const io_options& options,
                         std::error_code& ec);
  operation* start_flush(const std::shared_ptr<write_tracker>& tracker,
                         const std::shared_ptr<posted_operations>& posted,
                         const io_options& options, std::error_code& ec);
  operation* start_atomic(std::uint64_t offset, const atomic_access& wanted,
                          std::span<std::byte> previous, const io_options& options,
                          std::error_code& ec);
  operation* start_notify(const std::shared_ptr<write_tracker>& tracker,
                          const std::shared_ptr<posted_operations>& posted, std::uint64_t value,
                          const io_options& options, std::error_code& ec);

  /// Returns why an access can not even be tried; no error if it can.
  std::error_code check(std::uint64_t offset, std::uint64_t length, access wanted) const noexcept;
  /// Returns where those bytes are in this process. Errors: as check(), without a text;
  /// not_supported where they are not, and why.
  result<std::byte*> view(std::uint64_t offset, std::uint64_t length, access wanted) const;
  /// Returns why the bytes do not move in the way `wanted`; nothing where they do. Under the lock.
  std::string why_not(ucx::transfer_method wanted) const;
  /// Returns whether accesses go by message to an owner that answers several in one.
  bool shares_messages(access wanted) const noexcept;

  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept;
  void close() noexcept;
  /// `told` is called with the region's end, under the lock.
  void when_released(std::function<void()> told) { when_released_ = std::move(told); }
  /// The owner said that it withdrew the region: nothing new is sent.
  void revoke() noexcept {
    revoked_ = true;
    path_->close();
  }
  /// Lets go of UCX's key, which goes before its endpoint.
  void drop_key() noexcept override { path_->drop_key(); }

  // For its path.
  std::shared_ptr<peer_region> share() override { return shared_from_this(); }
  operation* start_read_by(std::unique_ptr<direct_move> by, std::uint64_t offset,
                           std::span<std::byte> into, const io_options& options,
                           std::error_code& ec) override {
    return by_message_.read(offset, into, options, std::move(by), ec);
  }
  operation* start_write_by(std::unique_ptr<direct_move> by,
                            const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                            std::span<const std::byte> from, const io_options& options,
                            std::error_code& ec) override {
    return by_message_.write(tracker, offset, from, options, std::move(by), ec);
  }

 private:
  remote_region_core(endpoint_core& endpoint, const remote_descriptor& descriptor);
  void look_at_owner() noexcept;
  result<void> choose_path(const remote_region_options& options);
  std::shared_ptr<plane_transfer> awaited() const noexcept;
  result<void> check_path() const;
  operation* read_into_device(std::uint64_t offset, std::span<std::byte> into,
                              const io_options& options, std::error_code& ec);
  operation* write_from_device(const std::shared_ptr<write_tracker>& tracker, std::uint64_t offset,
                               std::span<const std::byte> from, const io_options& options,
                               std::error_code& ec);

  remote_extent extent_;
  write_window window_;
  message_path by_message_{*this};  // the way of what its path declines
  path_choice chosen_;              // with a better path, or none; never changed behind make()
  transfer_path* path_ = &by_message_;
  std::function<void()> when_released_;
  bool in_place_ = false;  // the caller's processor moves the bytes
  bool closed_ = false;
  bool revoked_ = false;
};

}  // namespace ucx::detail
