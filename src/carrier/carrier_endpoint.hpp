// One connection over a socket: what waits to be sent, and the message that is being read.
#pragma once

#include <sys/socket.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/owned_descriptor.hpp"
#include "carrier/carrier_request.hpp"
#include "carrier/carrier_source.hpp"
#include "carrier/carrier_timer.hpp"
#include "carrier/own_flows.hpp"
#include "carrier/passed_descriptor.hpp"
#include "carrier/segment.hpp"
#include "carrier/tls.hpp"
#include "ucx/peer_identity.hpp"

struct iovec;

namespace ucx::detail {

class carrier_worker;
struct carrier_caller;

/// Short messages overtake long ones that have not begun, for a while: a long one waits for 256 KiB
/// of short ones at most. Nothing overtakes the first message of a connection, which is its hello.
class carrier_endpoint final : public carrier_source {
 public:
  /// Of a socket that a listener accepted, whose preamble has been read, or of one that is not
  /// connected yet. `tls`: nothing in the clear.
  carrier_endpoint(carrier_worker& worker, owned_descriptor socket,
                   std::unique_ptr<tls_session> tls) noexcept;
  ~carrier_endpoint() override;

  /// Begins to connect. Errors: the system's; of a peer that is not there it is told later.
  static ucs_status_t connect(carrier_worker& worker, const ucp_ep_params_t& params,
                              carrier_endpoint*& made);
  static ucs_status_t accept(carrier_worker& worker, carrier_caller& accepted,
                             const ucp_ep_params_t& params, carrier_endpoint*& made);

  void happened(std::uint32_t events) noexcept override;
  /// Reads and writes what it can without waiting. Returns how much happened.
  unsigned look() noexcept;
  /// Tells its owner that it has failed.
  void tell_failure() noexcept;

  ucs_status_ptr_t send(unsigned id, std::span<const std::byte> header,
                        std::span<const std::byte> payload, const ucp_request_param_t& params);
  ucs_status_ptr_t flush(const ucp_request_param_t& params);
  /// Drops what waits. This object may be gone when it returns.
  ucs_status_ptr_t close(const ucp_request_param_t& params);

  /// The rest of the payload that has begun to come goes to `place`, which has its whole size.
  /// Called by the handler that was told of it. Returns whether it does.
  bool give_place(std::span<std::byte> place);
  /// Nothing of the payload goes to its place any more. The rest is dropped.
  void lose_place() noexcept;

  // Files beside messages, over Unix sockets (`ucp_api::ep_carries_files` and behind it).
  bool carries_files() const noexcept { return is_unix_ && !tls_; }
  void take_files() noexcept { takes_files_ = carries_files(); }
  void pass_file(owned_descriptor file) noexcept;
  owned_descriptor passed_file() noexcept;

  bool is_by_tls() const noexcept { return tls_ != nullptr; }
  /// Returns who has connected; null for anybody, and at the side that did.
  const std::shared_ptr<const peer_identity>& identity() const noexcept { return identity_; }
  /// Fails if the token or the certificate that let the peer in is none any more.
  void check_token() noexcept;
  /// See `tls_session`.
  std::optional<std::chrono::seconds> certificate_time() const noexcept {
    return tls_ && stage_ == stage::open ? tls_->certificate_time() : std::nullopt;
  }
  ucs_status_t local(sockaddr_storage& told) const noexcept;
  ucs_status_t peer(sockaddr_storage& told) const noexcept;

  bool is_ready = false;   ///< It is among those who look again; the worker's.
  bool is_buried = false;  ///< It goes at the end of this round; the worker's.

 private:
  enum class stage { connecting, shaking, open, failed };
  enum class progress { all, some, failed };

  void take_handler(const ucp_ep_params_t& params) noexcept;
  void set_options() const noexcept;
  void fail(ucs_status_t why) noexcept;
  void drop_socket() noexcept;
  void note_flow(const sockaddr& to, socklen_t size) noexcept;
  bool dial(const sockaddr& to, socklen_t size);
  void dial_again() noexcept;
  void leave_queue() noexcept;
  void dialled() noexcept;
  void connected() noexcept;
  void shake() noexcept;
  void say_preamble() noexcept;
  /// Returns whether it is a peer's that leaves most of a round to others.
  bool has_company() const noexcept;
  bool has_unsent() const noexcept { return tls_ && tls_->has_unsent(); }
  bool is_its_own_peer() const noexcept;
  bool was_refused() const noexcept;
  bool may_come(const segment_head& head) const noexcept;
  std::uint64_t oldest() const noexcept;
  void end_all(ucs_status_t why) noexcept;
  void end_flushes() noexcept;

  bool may_send_at_once() const noexcept {
    return stage_ == stage::open && writable_ && current_ == nullptr && short_.empty() &&
           long_.empty();
  }
  carrier_request* next() noexcept;
  progress send_rest(carrier_request& request) noexcept;
  progress write(std::span<const ::iovec> what, std::size_t& sent, int file = -1) noexcept;
  unsigned send_waiting() noexcept;
  carrier_request& queue(const segment_head& head, std::span<const std::byte> header,
                         std::span<const std::byte> payload, std::size_t sent,
                         const ucp_request_param_t& params);

  unsigned receive() noexcept;
  ::ssize_t read(std::span<const ::iovec> parts, bool& brought_file) noexcept;
  void hold(owned_descriptor file) noexcept;
  unsigned take(std::span<std::byte> bytes);
  bool take_preamble(std::span<std::byte>& bytes);
  void begin_long(const segment_head& head, std::span<const std::byte> bytes);
  void end_long();

  carrier_worker& worker_;
  owned_descriptor socket_;
  const std::unique_ptr<tls_session> tls_;
  std::shared_ptr<const peer_identity> identity_;
  std::optional<tcp_flow> flow_;  // that this side has begun
  std::uint64_t flow_socket_ = 0;
  stage stage_ = stage::connecting;
  bool is_accepted_ = false;
  bool is_unix_ = false;
  bool takes_files_ = false;
  bool is_for_handler_ = false;  // `held_file_`
  owned_descriptor next_file_;
  owned_descriptor held_file_;  // of a message that has not come whole
  ucp_err_handler_t on_error_ = {};
  ucs_status_t failure_ = UCS_OK;
  bool greeted_ = false;  // the peer's preamble has come
  bool readable_ = false;
  bool writable_ = false;
  bool hung_up_ = false;    // nothing comes behind what there is to read
  bool has_sent_ = false;   // its first message
  bool has_heard_ = false;  // the peer's

  carrier_request* current_ = nullptr;  // has begun
  request_list short_;
  request_list long_;
  request_list flushes_;
  std::uint64_t last_number_ = 0;
  std::size_t overtaken_ = 0;  // bytes of short messages since the last long one

  struct waiting_place {
    sockaddr_storage to;
    socklen_t size;
    std::unique_ptr<carrier_timer> timer;
  };
  std::unique_ptr<waiting_place> queue_is_full_;  // of the listener

  std::vector<std::byte> partial_;  // the beginning of a message
  struct {
    std::byte* payload = nullptr;  // null: it is dropped
    std::size_t size = 0;
    std::size_t filled = 0;
    unsigned id = 0;
    bool in_place = false;  // in memory of the reader's
    std::vector<std::byte> header;
  } arriving_;
};

}  // namespace ucx::detail
