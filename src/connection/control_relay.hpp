// The control messages of a connection that another worker drives than the one its session lives
// on.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

#include "connection/channel.hpp"

namespace ucx::detail {

struct control_header;
class endpoint_core;
class inbox_task;
class worker_core;

/// Carries what arrives to the session, in order, and what the session says back. Each side is
/// under the lock of that side's worker, and neither ever waits for the other's. A peer that asks
/// faster than the session answers is told `busy`. It is blamed where it goes on with messages that
/// have no answer: nothing else holds it back here.
class control_relay final : public channel_receiver,
                            public std::enable_shared_from_this<control_relay> {
 public:
  /// Becomes the receiver of `peer`, and lives until that has ended. Under the lock of the peer's
  /// worker.
  static std::shared_ptr<control_relay> begin(endpoint_core& peer, std::weak_ptr<worker_core> home);
  control_relay(const control_relay&) = delete;
  control_relay& operator=(const control_relay&) = delete;

  // Under the lock of the connection's worker.
  void received(std::span<const std::byte> message) override;
  void ended(std::error_code why) noexcept override;

  // Under the lock of the session's worker.
  /// Returns what a session sends by; it may outlive the connection.
  std::unique_ptr<channel> make_channel();
  /// Passes on to `session` from here on; null: to none.
  void attach(channel_receiver* session) noexcept { session_ = session; }
  /// Something of the connection was lost for want of memory, which ends it.
  void lacks_memory() noexcept;

 private:
  class way_back;
  class last_word;

  control_relay(endpoint_core& peer, std::weak_ptr<worker_core> home);
  peer_reach reach_of(endpoint_core& peer) const;
  void look_at_unsent();
  void await_turn(std::vector<std::byte>&& message, std::size_t room) noexcept;
  void serve(std::span<const std::byte> message) noexcept;
  void end_at(worker_core& home, std::error_code why) noexcept;
  void refuse(endpoint_core& peer, const std::optional<control_header>& said);

  const std::weak_ptr<worker_core> home_;
  const std::weak_ptr<worker_core> away_;
  const std::weak_ptr<endpoint_core> peer_;
  std::shared_ptr<inbox_task> untold_;    // until memory was short; the session's
  std::shared_ptr<last_word> last_word_;  // until the connection has ended
  const std::size_t longest_;
  const peer_reach reach_;
  const peer_facts facts_;
  std::shared_ptr<control_relay> self_;       // Until the connection has ended.
  std::atomic<std::size_t> on_the_way_{0};    // Bytes that the connection's worker has not got yet.
  std::atomic<std::size_t> arriving_{0};      // Bytes that the session has not got yet.
  std::atomic<std::size_t> unsent_there_{0};  // When that was looked at last.
  std::atomic<bool> welcomed_{false};         // Until then a peer has little to say.
  unsigned refusals_ = 0;                     // Since the session had got all; the connection's.
  channel_receiver* session_ = nullptr;       // The session's side.
};

}  // namespace ucx::detail
