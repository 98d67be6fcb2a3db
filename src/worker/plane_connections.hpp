// The connections of a plane to those of peers, and its keys to memory of theirs.
#pragma once

#include <ucp/api/ucp.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "ucp/ucp_api.hpp"
#include "worker/plane_transfer.hpp"

namespace ucx::detail {

/// Any thread asks for them. The plane's thread alone has UCX make and end them.
class plane_connections {
 public:
  explicit plane_connections(ucp_api& api) noexcept : api_(api) {}
  plane_connections(const plane_connections&) = delete;
  plane_connections& operator=(const plane_connections&) = delete;

  /// Returns the connection to the plane with that address, or a new one where there is none, or it
  /// is lost.
  std::shared_ptr<plane_peer> peer(std::span<const std::byte> address);
  /// Returns a key to memory of `peer`. It ends when nothing else holds it.
  std::shared_ptr<plane_key> key(std::shared_ptr<plane_peer> peer,
                                 std::span<const std::byte> packed);

  // On the plane's thread.
  /// Connects, and unpacks the key, where that was not done yet.
  ucs_status_t ready(plane_key& key, ucp_worker_h worker) noexcept;
  /// Ends the connections that are lost, by force. Returns whether there were any.
  bool drop_lost() noexcept;
  /// Ends the keys and connections that nothing holds. Returns whether there were any.
  bool drop_unheld();
  /// All are lost.
  void lose() noexcept;
  void destroy_keys() noexcept;
  /// Returns whether UCX has not ended yet what was dropped.
  bool is_closing() const noexcept { return closing_ > 0; }

 private:
  void drop(plane_peer& peer) noexcept;
  void destroy_keys(const plane_peer& peer) noexcept;
  static void on_closed(void* request, ucs_status_t status, void* self);
  static void on_lost(void* self, ucp_ep_h endpoint, ucs_status_t status);

  ucp_api& api_;
  std::mutex mutex_;
  std::vector<std::shared_ptr<plane_peer>> peers_;
  std::vector<std::shared_ptr<plane_key>> keys_;
  std::size_t closing_ = 0;  // the thread's: requests of UCX's that close endpoints
};

}  // namespace ucx::detail
