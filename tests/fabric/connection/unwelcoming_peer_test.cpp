// A peer whose UCX takes the connection, and that goes before it has said a word of our protocol.
#include <gtest/gtest.h>
#include <ucp/api/ucp.h>

#include <chrono>
#include <cstddef>
#include <system_error>

#include "support/transports/connected_pair.hpp"
#include "support/transports/foreign_ucx.hpp"
#include "ucx/error.hpp"

namespace ucx::test {
namespace {

using namespace std::chrono_literals;

/// UCX by hand. It hears hello, and answers nothing.
class unwelcoming_peer {
 public:
  unwelcoming_peer() {
    ::ucp_am_handler_param_t hears = {};
    hears.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG;
    hears.id = 255;
    hears.cb = [](void* self, const void*, std::size_t, void*, std::size_t,
                  const ::ucp_am_recv_param_t*) {
      static_cast<unwelcoming_peer*>(self)->heard_ = true;
      return UCS_OK;
    };
    hears.arg = this;
    EXPECT_EQ(::ucp_worker_set_am_recv_handler(worker_, &hears), UCS_OK);
    const socket_address any("127.0.0.1:0");
    ::ucp_listener_params_t params = {};
    params.field_mask = UCP_LISTENER_PARAM_FIELD_SOCK_ADDR | UCP_LISTENER_PARAM_FIELD_CONN_HANDLER;
    params.sockaddr = {any.native(), any.native_size()};
    params.conn_handler = {[](::ucp_conn_request_h request, void* self) {
                             static_cast<unwelcoming_peer*>(self)->take(request);
                           },
                           this};
    EXPECT_EQ(::ucp_listener_create(worker_, &params, &listener_), UCS_OK);
  }
  ~unwelcoming_peer() {
    leave();
    ::ucp_listener_destroy(listener_);
    give_back(worker_);
    give_back(context_);
  }
  unwelcoming_peer(const unwelcoming_peer&) = delete;
  unwelcoming_peer& operator=(const unwelcoming_peer&) = delete;

  socket_address address() const {
    ::ucp_listener_attr_t told = {};
    told.field_mask = UCP_LISTENER_ATTR_FIELD_SOCKADDR;
    EXPECT_EQ(::ucp_listener_query(listener_, &told), UCS_OK);
    return socket_address::from_native(reinterpret_cast<const ::sockaddr*>(&told.sockaddr),
                                       sizeof told.sockaddr);
  }
  bool heard_hello() const noexcept { return heard_; }
  void progress() { ::ucp_worker_progress(worker_); }
  /// Drops the connection, as its death would.
  void leave() {
    if (endpoint_ == nullptr) return;
    ::ucp_request_param_t force = {};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ::ucs_status_ptr_t closing = ::ucp_ep_close_nbx(endpoint_, &force);
    endpoint_ = nullptr;
    if (!UCS_PTR_IS_PTR(closing)) return;
    while (::ucp_request_check_status(closing) == UCS_INPROGRESS) progress();
    ::ucp_request_free(closing);
  }

 private:
  void take(::ucp_conn_request_h request) {
    ::ucp_ep_params_t params = {};
    params.field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
    params.conn_request = request;
    params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
    EXPECT_EQ(::ucp_ep_create(worker_, &params, &endpoint_), UCS_OK);
  }

  ::ucp_context_h context_ = make_foreign_context(context_options_for(route::tcp_by_listener));
  ::ucp_worker_h worker_ = make_foreign_worker(context_, foreign_threads::one_by_one);
  ::ucp_listener_h listener_ = nullptr;
  ::ucp_ep_h endpoint_ = nullptr;
  bool heard_ = false;
};

TEST(UnwelcomingPeer, ThatLeavesIsNoRefusal) {
  unwelcoming_peer peer;
  const context reaching(context_options_for(route::tcp_by_listener));
  worker client(reaching);
  std::error_code told;
  const endpoint connection(
      client, peer.address(),
      {.wait = connect_wait::none,
       .events = {.on_refused = [&](const connection_end& refusal) { told = refusal.reason; }}});
  const auto drive_until = [&](auto done) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (!done() && std::chrono::steady_clock::now() < end) {
      peer.progress();
      client.progress();
    }
    return done();
  };
  ASSERT_TRUE(drive_until([&] { return peer.heard_hello(); }));
  EXPECT_EQ(connection.state(), connection_state::connecting);
  peer.leave();
  EXPECT_TRUE(drive_until([&] { return static_cast<bool>(told); }));
  EXPECT_EQ(told, errc::connection_reset) << told.message();
}

}  // namespace
}  // namespace ucx::test
