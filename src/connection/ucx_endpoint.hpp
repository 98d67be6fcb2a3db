// UCX's endpoint of a connection: made, asked, dropped, and when UCX has let go of it.
#pragma once

#include <cassert>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ucp/ucp_api.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

class worker_core;

/// Everything happens under the worker's lock. Its stages:
///
///     from      to        when
///     none      held      make()
///     held      closing   start_drop()
///     held      gone      start_drop(), where UCX can not drop it: it goes with its worker
///     held      left      leave(): UCX still moves bytes of this side's, not of callers'
///     left      recalled  recall(), for a drop
///     recalled  closing   start_drop()
///     closing   gone      UCX has let go
///     closing   kept      UCX could not close it, and keeps it until its worker goes
class ucx_endpoint {
 public:
  /// Is told, inside UCX's callbacks.
  class owner {
   public:
    /// UCX reports that the connection is lost.
    virtual void lost(ucs_status_t status) noexcept = 0;
    /// UCX has connected the two, as `wire_up()` asked. It may tell within that call.
    virtual void wired_up() noexcept = 0;
    /// UCX has let go of what was dropped.
    virtual void let_go() noexcept = 0;

   protected:
    ~owner() = default;
  };

  /// Whether the loss of the peer is to be detected can not be changed later.
  ucx_endpoint(worker_core& worker, owner& told, bool detects_failure) noexcept
      : worker_(worker), owner_(told), detects_failure_(detects_failure) {}
  ucx_endpoint(const ucx_endpoint&) = delete;
  ucx_endpoint& operator=(const ucx_endpoint&) = delete;

  /// Makes it; adds to `params` how errors are told. Where that fails, nothing is there to drop.
  ucs_status_t make(ucp_ep_params_t& params) noexcept;

  /// Has UCX connect to a peer that is sent nothing else: `wired_up()` or `lost()` follows.
  void wire_up() noexcept;
  /// Has UCX wait for the peer's answers to what was written: that counts as a transfer.
  void await_answers() noexcept;

  ucp_ep_h handle() const noexcept { return handle_; }
  bool detects_failure() const noexcept { return detects_failure_; }
  /// Returns UCX's "transport/device" pairs; none where there is no endpoint (any more).
  std::vector<std::string> transports() const;
  /// Returns whether the system lets this process and the peer's share memory.
  bool shares_memory() const noexcept;
  /// Returns whether RDMA hardware is among its lanes; also where no memory is left to find out.
  bool sends_by_rdma() const noexcept;
  /// Returns who has connected; null where that is not known.
  std::shared_ptr<const peer_identity> identity() const noexcept;
  /// Returns this side's socket address; empty where UCX does not tell.
  socket_address local() const;

  /// UCX's own requests in flight over it, of any kind. Returns whether it was the last that ended.
  void transfer_started() noexcept { ++transfers_; }
  bool transfer_ended() noexcept { return --transfers_ == 0; }
  unsigned transfers() const noexcept { return transfers_; }

  /// Has UCX end it, with what is in flight; `let_go()` follows, soon. Again, it does nothing.
  void start_drop() noexcept;
  /// After a drop, a peer that answers by UCX alone would write to a socket that is closed. That
  /// ends its process ("unexpected error" of `ucp_request_try_send`, and assertions). So UCX is
  /// left to end what is in flight. From here on it has no handle.
  void leave() noexcept {
    left_ = std::exchange(handle_, nullptr);
    reach(stage::left);
  }
  /// Takes it back, to be dropped.
  void recall() noexcept {
    handle_ = std::exchange(left_, nullptr);
    reach(stage::recalled);
  }
  bool is_left() const noexcept { return stage_ == stage::left; }
  bool is_left_idle() const noexcept { return is_left() && transfers_ == 0; }
  bool was_left() const noexcept { return stage_ == stage::recalled; }
  /// Returns whether UCX has let go of the endpoint's own requests, or of all that is of callers'.
  bool has_let_go() const noexcept {
    if (is_left()) return true;
    return stage_ != stage::closing && (!detects_failure_ || transfers_ == 0);
  }
  bool is_dropped() const noexcept {
    return handle_ == nullptr && stage_ != stage::closing && !is_left();
  }
  /// Returns whether no callback of UCX's can come back to it.
  bool is_over() const noexcept { return is_dropped() && stage_ != stage::kept && transfers_ == 0; }

 private:
  enum class stage { none, held, left, recalled, closing, gone, kept };
  /// The table above.
  static constexpr bool may_become(stage now, stage next) noexcept {
    return (now == stage::none && next == stage::held) ||
           (now == stage::held &&
            (next == stage::closing || next == stage::gone || next == stage::left)) ||
           (now == stage::left && next == stage::recalled) ||
           (now == stage::recalled && next == stage::closing) ||
           (now == stage::closing && (next == stage::gone || next == stage::kept));
  }
  void reach(stage next) noexcept {
    assert(may_become(stage_, next));
    stage_ = next;
  }
  static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status);
  /// Starts a flush; returns what UCX does: the callback comes if that is a pointer.
  ucs_status_ptr_t start_flush(ucp_send_nbx_callback_t ended) noexcept;
  static void on_wired_up(void* request, ucs_status_t status, void* self);
  static void on_answered(void* request, ucs_status_t status, void* self);
  static void on_closed(void* request, ucs_status_t status, void* self);
  void tell_of_wire(ucs_status_t status) noexcept;

  worker_core& worker_;
  owner& owner_;
  const bool detects_failure_;
  ucp_ep_h handle_ = nullptr;
  ucp_ep_h left_ = nullptr;
  stage stage_ = stage::none;
  unsigned transfers_ = 0;
};

}  // namespace ucx::detail
