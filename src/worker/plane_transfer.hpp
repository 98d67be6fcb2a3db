// One transfer by UCX between memory of this process and memory of a device at a peer.
#pragma once

#include <ucp/api/ucp.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "cuda/cuda_context.hpp"
#include "cuda/stream_mark.hpp"

namespace ucx::detail {

class device_plane;
class plane_connections;

/// The connection of a plane to that of a peer.
class plane_peer {
 public:
  /// UCX itself checks nothing of an address, whose end it finds by its content: of a shorter one
  /// there is none.
  static constexpr std::size_t shortest_address = 10;

  explicit plane_peer(std::span<const std::byte> address);
  plane_peer(const plane_peer&) = delete;
  plane_peer& operator=(const plane_peer&) = delete;

  /// Returns why it was lost; UCS_OK where it was not. From any thread.
  ucs_status_t lost() const noexcept { return lost_.load(); }
  /// It is lost, unless it was already: its thread ends it by force. From any thread.
  void lose(ucs_status_t why) noexcept {
    ucs_status_t none = UCS_OK;
    lost_.compare_exchange_strong(none, why);
  }

 private:
  friend class device_plane;
  friend class plane_connections;
  class plane_connections;

  bool has(std::span<const std::byte> address) const noexcept;

  const std::size_t length_;
  std::vector<std::byte> address_;  // behind which UCX may look for its end
  std::atomic<ucs_status_t> lost_{UCS_OK};
  // The thread's.
  ucp_ep_h endpoint_ = nullptr;
  std::size_t in_ucx_ = 0;  // transfers
};

/// A key to memory of a peer.
class plane_key {
 public:
  plane_key(std::shared_ptr<plane_peer> peer, std::span<const std::byte> packed)
      : peer_(std::move(peer)), packed_(packed.begin(), packed.end()) {}
  plane_key(const plane_key&) = delete;
  plane_key& operator=(const plane_key&) = delete;

  const plane_peer& peer() const noexcept { return *peer_; }

 private:
  friend class device_plane;
  friend class plane_connections;
  class plane_connections;

  const std::shared_ptr<plane_peer> peer_;
  const std::vector<std::byte> packed_;
  ucp_rkey_h handle_ = nullptr;  // the thread's
};

/// Keeps what UCX needs. The caller's memory is not among that: wait until it is over.
class plane_transfer {
 public:
  plane_transfer() noexcept = default;
  plane_transfer(const plane_transfer&) = delete;
  plane_transfer& operator=(const plane_transfer&) = delete;
  virtual ~plane_transfer() = default;

  // Set before it is started.
  std::shared_ptr<plane_key> key;
  std::uint64_t address = 0;  ///< At the peer.
  std::span<std::byte> local;
  bool into_peer = false;
  /// That of `local`, where it is a device's; null where it is the host's.
  std::shared_ptr<const cuda_context> context;
  std::shared_ptr<const stream_mark> after;  ///< Work of the program's that comes before, if any.
  clock::time_point deadline = clock::time_point::max();  ///< The connection ends then.

  /// How it ended. Of a write: also that it is in the peer's memory. REQUIRES: it is over.
  ucs_status_t status() const noexcept { return status_; }
  /// Returns whether UCX had it, and may have moved a part: bytes of a write that failed may come
  /// later. REQUIRES: it is over.
  bool was_taken() const noexcept { return taken_; }
  /// Returns whether the program's work before it failed. REQUIRES: it is over.
  bool lacks_work() const noexcept { return lacks_work_; }
  /// Nothing waits for it any more. Where UCX has begun it, its connection is closed by force, for
  /// nothing else stops UCX. REQUIRES: `device_plane::look()` follows.
  void abandon() noexcept { wanted_.store(false); }
  /// Waits until UCX has let go of it, and returns whether it has.
  bool wait_over(std::chrono::nanoseconds longest);
  bool is_over() const noexcept { return over_.load(); }

 protected:
  /// It is over. On the plane's thread, once.
  virtual void ended() noexcept {}

 private:
  friend class device_plane;
  enum class stage { waiting, moving, moved, flushing, over };

  std::atomic<bool> wanted_{true};
  device_plane* plane_ = nullptr;
  stage stage_ = stage::waiting;  // the thread's, as the next
  ucs_status_t status_ = UCS_OK;
  bool taken_ = false;
  bool lacks_work_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> over_{false};
};

}  // namespace ucx::detail
