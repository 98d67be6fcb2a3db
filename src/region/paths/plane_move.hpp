// A move by an adapter of the network: UCX's RMA with memory of a device.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "region/paths/direct_move.hpp"
#include "ucx/access.hpp"
#include "worker/device_plane.hpp"

namespace ucx::detail {

class worker_core;

/// The knowledge of the way to one region, which its path and moves share. Each pair
/// of kinds of memory is refused by itself, in each direction. Threads: sharing one object is safe.
class plane_state {
 public:
  /// `is_read`: reads into the host's memory decide what users see, and else writes out of it.
  plane_state(std::shared_ptr<logger> log, bool is_read) noexcept
      : log_(std::move(log)), is_read_(is_read) {}
  plane_state(const plane_state&) = delete;
  plane_state& operator=(const plane_state&) = delete;

  /// Returns whether UCX ends so what it would only emulate, or has no transport for.
  static bool is_refusal(ucs_status_t status) noexcept;

  /// Returns whether an access may be tried.
  bool may_move(bool into_owner, bool with_device) const noexcept;
  /// Returns whether reads into the host's memory, or writes out of it, are taken for the
  /// hardware's.
  bool is_open() const noexcept { return open_.load(); }
  void opened() noexcept { open_.store(true); }
  /// UCX does not do it at all.
  void refused(bool into_owner, bool with_device, ucs_status_t status) noexcept;
  /// A transfer has failed with `status`, over a connection that was `lost`, or was not.
  void failed(bool into_owner, bool with_device, ucs_status_t status, ucs_status_t lost) noexcept;
  /// The first transfer has failed, and tells nothing of those that follow.
  void not_opened(ucs_status_t status) noexcept;
  /// This side has no plane.
  void lacks_plane(std::string why) noexcept;
  /// A transfer has succeeded.
  void moved(bool into_owner, bool with_device) noexcept {
    if (into_owner != is_read_ && !with_device) opened();
  }
  /// Returns why bytes go another way; empty where nothing was refused.
  std::string complaint() const;

 private:
  void tell(std::string why) noexcept;
  void complain(std::string why) noexcept;

  const std::shared_ptr<logger> log_;
  const bool is_read_;
  std::atomic<bool> open_{false};
  std::atomic<bool> lost_{false};
  std::atomic<bool> refused_[2][2] = {};  // writes; with a device
  mutable std::mutex mutex_;
  std::string complaint_;
};

/// Ends with connection_reset where bytes of a write may still come to the owner. Ends
/// with io_error where the program's work before it failed: such an access has failed. After any
/// other error it goes by message. UCX has the caller's memory until its transfer is over. Where
/// the move is given up, its connection is closed by force, and the move ends when UCX has let go.
/// Under the worker's lock.
class plane_move final : public direct_move {
 public:
  /// The way to the owner's memory.
  struct way {
    std::shared_ptr<device_plane> plane;
    std::shared_ptr<plane_key> key;
    std::shared_ptr<plane_state> state;
    std::uint64_t address;  ///< Where the region begins at the owner.
  };
  /// `context` is that of a device's memory here, with `after`; null for memory of the host's.
  plane_move(worker_core& worker, way there, std::shared_ptr<const cuda_context> context,
             std::shared_ptr<const stream_mark> after);
  ~plane_move() override;

  std::error_code start(user& told, std::uint64_t offset, std::span<std::byte> bytes,
                        bool into_owner) override;
  bool let_go() noexcept override;
  void look() noexcept override;

 private:
  class transfer;
  bool look_for_plane() const;
  void ended(ucs_status_t status);

  worker_core& worker_;
  const way there_;
  const std::shared_ptr<const cuda_context> context_;
  const std::shared_ptr<const stream_mark> after_;
  user* user_ = nullptr;
  std::shared_ptr<transfer> running_;
  bool is_given_up_ = false;
};

}  // namespace ucx::detail
