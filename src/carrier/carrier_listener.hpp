// A listening socket, and those who have connected and not said who they are.
#pragma once

#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string_view>

#include "base/clock.hpp"
#include "base/owned_descriptor.hpp"
#include "carrier/carrier_source.hpp"
#include "carrier/carrier_timer.hpp"
#include "carrier/segment.hpp"
#include "carrier/tls.hpp"
#include "ucx/peer_identity.hpp"

namespace ucx::detail {

class carrier_listener;
class carrier_worker;

/// A peer that said that it is one; what UCX calls a connection request. It is free until it is
/// accepted, on any worker, or rejected.
struct carrier_caller {
  carrier_caller() = default;
  carrier_caller(const carrier_caller&) = delete;
  carrier_caller& operator=(const carrier_caller&) = delete;
  ~carrier_caller() {
    if (socket) ::shutdown(socket.get(), SHUT_RDWR);  // a child of fork() may have it still
  }

  owned_descriptor socket;
  std::unique_ptr<tls_session> tls;  ///< Nothing in the clear.
  sockaddr_storage address = {};
  std::shared_ptr<const peer_identity> identity;  ///< Null: anybody.
};

/// A guest costs a descriptor and some bytes, by TLS 20 KiB, for five seconds. In a round one guest
/// of TLS goes on with its handshake. While connections are read from, handshakes get a fifth of
/// the time: those who are connected do not wait for strangers. Of more than 64 the oldest goes of
/// the source that has most. Where the process has no descriptor left, callers wait in the system's
/// queue.
class carrier_listener final : public carrier_source {
 public:
  static constexpr std::size_t most_guests = 64;
  static constexpr std::chrono::seconds longest_greeting{5};
  /// No guest goes for another one before it has had that long for a handshake.
  static constexpr std::chrono::milliseconds shortest_handshake{1000};

  static ucs_status_t make(carrier_worker& worker, const ucp_listener_params_t& params,
                           std::unique_ptr<carrier_listener>& made);
  /// `tls`: null where its guests are in the clear.
  carrier_listener(carrier_worker& worker, tls_context* tls,
                   const ucp_listener_conn_handler_t& told) noexcept;
  ~carrier_listener() override;

  void happened(std::uint32_t events) noexcept override;
  ucs_status_t address(sockaddr_storage& told) const noexcept;
  /// It lets no peer in from here on, and tells of none.
  void stop() noexcept;

 private:
  class guest;

  void let_in() noexcept;
  bool is_full() const noexcept;
  guest& first_to_go() const noexcept;
  void pause() noexcept;
  void pause_for(std::chrono::milliseconds time) noexcept;
  void look_at_time() noexcept;
  void set_timer() noexcept;
  void heard(guest& from) noexcept;
  void identify(carrier_caller& caller) const;
  bool shakes(guest& with) noexcept;
  bool has_turn() noexcept;
  void give_token(guest& to) noexcept;
  void note(const guest& of) const noexcept;
  void tell(const guest& of, std::string_view what) noexcept;
  void dismiss(guest& gone) noexcept;

  carrier_worker& worker_;
  tls_context* const tls_;
  std::shared_ptr<meeting_book> keys_;  // which alone are accepted; null: tokens are
  ucp_listener_conn_handler_t told_;
  owned_descriptor socket_;
  bool paused_ = false;  // for want of descriptors
  bool stopped_ = false;
  std::uint64_t last_shaken_ = 0;  // the round of the last step of a handshake
  clock::time_point next_shake_;   // while connections are read from
  clock::time_point telling_since_;
  unsigned told_lines_ = 0;  // since then
  std::unique_ptr<carrier_timer> timer_;
  std::list<std::unique_ptr<guest>> guests_;  // the oldest first
};

}  // namespace ucx::detail
