// How a connection ends: docs/architecture.md, "Closing". Apart from endpoint_core.cpp because
// every step here waits, and nothing there does.
#include <algorithm>
#include <utility>

#include "detail/connection_table.hpp"
#include "detail/endpoint_core.hpp"
#include "detail/operation_pools.hpp"
#include "detail/remote_region_core.hpp"
#include "detail/status.hpp"
#include "detail/worker_core.hpp"

namespace ucx::detail {
namespace {

/// How long UCX may take to end what a dropped endpoint had in flight.
constexpr std::chrono::seconds drop_limit{2};

/// How long a peer may take to say farewell: it has answered everything else already.
constexpr std::chrono::seconds farewell_limit{1};

/// Bounds what is left to do for a dropped endpoint among what others keep UCX busy with.
constexpr int rounds_to_close = 100;

}  // namespace

/// Outlives its endpoint if UCX's callback comes later than we wait for it.
struct endpoint_core::closing_endpoint {
  endpoint_core* owner;
  ucp_api* api;

  static void closed(void* request, ucs_status_t, void* self) {
    const std::unique_ptr<closing_endpoint> closing(static_cast<closing_endpoint*>(self));
    closing->api->request_free(request);
    if (closing->owner != nullptr) closing->owner->closing_ = nullptr;
  }
};

void endpoint_core::close(close_mode mode, std::error_code& ec) {
  ec.clear();
  {
    const std::lock_guard guard(worker_.lock());
    if (state_ == endpoint_state::closed || taking_leave_) return;
    if (mode == close_mode::flush && worker_.in_handler()) {
      ec = errc::would_deadlock;
      return;
    }
    taking_leave_ = true;
  }
  if (mode == close_mode::flush) {
    flush_for_close(worker_.api().now() + worker_.options().close_timeout, ec);
  }
  const std::lock_guard guard(worker_.lock());
  if (state_ == endpoint_state::failed) {
    if (!ec && mode == close_mode::flush) ec = error_;
  } else {
    options_.on_error.reset();  // closing on this side is no loss
    fail(make_error_code(errc::canceled), "the connection was closed on this side");
  }
  drop();
  state_ = endpoint_state::closed;
  worker_.connections().remove(*this);
}

void endpoint_core::flush_for_close(clock::time_point until, std::error_code& ec) {
  const auto failed = [&] { return state_ == endpoint_state::failed; };
  if (!worker_.wait_until(until, [&] { return failed() || !answers_pending(); })) {
    ec = errc::timed_out;
    return;
  }
  flush_operation* flush = nullptr;
  {
    const std::lock_guard guard(worker_.lock());
    // A peer that never answered owes nothing, and one that said goodbye was answered everything.
    if (state_ != endpoint_state::ready || leaving_) return;
    flush = worker_.pools().flushes.take();
    flush->begin(worker_, shared_from_this(), nullptr, true, until);
  }
  worker_.wait(*flush, clock::time_point::max());
  ec = flush->error();
  flush->let_go();
  flush->release();
  if (ec || session_ == 0) return;
  {
    const std::lock_guard guard(worker_.lock());
    if (failed() || leaving_) return;
    say_bye();
  }
  // A peer that does not answer has lost nothing: all that was asked of it is answered.
  worker_.wait_until(std::min(until, worker_.api().now() + farewell_limit),
                     [&] { return farewell_ || failed(); });
}

void endpoint_core::start_drop() noexcept {
  if (handle_ == nullptr) return;
  worker_.connections().remove(*this);
  if (transfers_ == 0) drop_keys();
  if (!detects_failure_ && transfers_ > 0) {
    // UCX refuses to force such an endpoint, and a flush would wait for the peer: it goes with its
    // worker.
    handle_ = nullptr;
    return;
  }
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  if (detects_failure_) {
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  }
  auto closing = std::make_unique<closing_endpoint>(closing_endpoint{this, &worker_.api()});
  params.cb.send = &closing_endpoint::closed;
  params.user_data = closing.get();
  ucs_status_ptr_t started = worker_.api().ep_close_nbx(std::exchange(handle_, nullptr), &params);
  if (UCS_PTR_IS_PTR(started)) closing_ = closing.release();
}

void endpoint_core::drop() noexcept {
  start_drop();
  ucp_api& api = worker_.api();
  const clock::time_point until = api.now() + drop_limit;
  // UCX alone, not our handlers: this may run inside one of them.
  while (closing_ != nullptr || (detects_failure_ && transfers_ > 0)) {
    if (api.now() >= until) break;
    if (worker_.progress_ucx() == 0) api.relax();
  }
  // UCX closes the sockets in later rounds, which a worker that the caller drives may never see.
  for (int i = 0; i < rounds_to_close && worker_.progress_ucx() != 0; ++i) {
  }
  if (closing_ != nullptr) std::exchange(closing_, nullptr)->owner = nullptr;
  drop_keys();
}

void endpoint_core::drop_keys() noexcept {
  for (remote_region_core* region : regions_) region->drop_key();
}

}  // namespace ucx::detail
