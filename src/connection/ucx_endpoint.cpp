#include "connection/ucx_endpoint.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "ucp/printed_text.hpp"
#include "ucp/rdma.hpp"
#include "worker/ucx_callback.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// UCX prints a line a lane: "lane[0]:  2:tcp/lo.0 md[1] -> md[1]/tcp/sysdev[255] am ...".
std::vector<std::string> parse_transports(std::string_view printed) {
  std::vector<std::string> found;
  for (std::size_t at = printed.find("lane["); at != std::string_view::npos;
       at = printed.find("lane[", at + 1)) {
    const std::size_t number = printed.find_first_not_of(' ', printed.find(':', at) + 1);
    const std::size_t begin = printed.find(':', number);
    if (begin == std::string_view::npos) break;
    std::string_view name = printed.substr(begin + 1);
    name = name.substr(0, name.find_first_of(" \n"));
    // The number behind the last dot is UCX's, of the path within the device.
    std::string transport(name.substr(0, name.rfind('.')));
    if (transport.find('/') == std::string::npos) continue;  // the connection manager's own lane
    if (std::find(found.begin(), found.end(), transport) == found.end()) {
      found.push_back(std::move(transport));
    }
  }
  return found;
}

}  // namespace

ucs_status_t ucx_endpoint::make(ucp_ep_params_t& params) noexcept {
  params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.err_mode = detects_failure_ ? UCP_ERR_HANDLING_MODE_PEER : UCP_ERR_HANDLING_MODE_NONE;
  if (detects_failure_) {
    params.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params.err_handler.cb = &ucx_endpoint::on_error;
    params.err_handler.arg = this;
  }
  const ucs_status_t status = worker_.api().ep_create(worker_.handle(), &params, &handle_);
  if (status != UCS_OK) handle_ = nullptr;
  if (handle_ != nullptr) reach(stage::held);
  return status;
}

ucs_status_ptr_t ucx_endpoint::start_flush(ucp_send_nbx_callback_t ended) noexcept {
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.cb.send = ended;
  params.user_data = this;
  transfer_started();
  const ucs_status_ptr_t started = worker_.api().ep_flush_nbx(handle_, &params);
  if (!UCS_PTR_IS_PTR(started)) transfer_ended();
  return started;
}

/// UCX flushes an endpoint when its lanes stand.
void ucx_endpoint::wire_up() noexcept {
  const ucs_status_ptr_t started = start_flush(&ucx_endpoint::on_wired_up);
  if (!UCS_PTR_IS_PTR(started)) tell_of_wire(UCS_PTR_RAW_STATUS(started));
}

void ucx_endpoint::on_wired_up(void* request, ucs_status_t status, void* self) {
  auto& endpoint = *static_cast<ucx_endpoint*>(self);
  const ucx_callback scope(endpoint.worker_, request);
  if (endpoint.transfer_ended()) endpoint.owner_.let_go();
  endpoint.tell_of_wire(status);
}

void ucx_endpoint::await_answers() noexcept { start_flush(&ucx_endpoint::on_answered); }

void ucx_endpoint::on_answered(void* request, ucs_status_t, void* self) {
  auto& endpoint = *static_cast<ucx_endpoint*>(self);
  const ucx_callback scope(endpoint.worker_, request);
  if (endpoint.transfer_ended()) endpoint.owner_.let_go();
}

void ucx_endpoint::tell_of_wire(ucs_status_t status) noexcept {
  status == UCS_OK ? owner_.wired_up() : owner_.lost(status);
}

void ucx_endpoint::on_error(void* self, ucp_ep_h, ucs_status_t status) {
  const ucx_endpoint& endpoint = *static_cast<ucx_endpoint*>(self);
  const ucx_callback scope(endpoint.worker_);
  endpoint.owner_.lost(status);
}

std::vector<std::string> ucx_endpoint::transports() const {
  if (handle_ == nullptr) return {};
  return parse_transports(
      printed_text([this](std::FILE* to) { worker_.api().ep_print_info(handle_, to); }));
}

std::shared_ptr<const peer_identity> ucx_endpoint::identity() const noexcept {
  return handle_ == nullptr ? nullptr : worker_.api().identity_of(handle_);
}

bool ucx_endpoint::shares_memory() const noexcept {
  if (detects_failure_) return false;  // UCX takes no shared memory then
  try {
    const std::vector<std::string> found = transports();
    return std::any_of(found.begin(), found.end(), [](std::string_view each) {
      return each.starts_with("posix/") || each.starts_with("sysv/");
    });
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool ucx_endpoint::sends_by_rdma() const noexcept {
  try {
    return any_is_rdma(transports());
  } catch (const std::bad_alloc&) {
    return true;
  }
}

socket_address ucx_endpoint::local() const {
  if (handle_ == nullptr) return {};
  ucp_ep_attr_t attributes = {};
  attributes.field_mask = UCP_EP_ATTR_FIELD_LOCAL_SOCKADDR;
  if (worker_.api().ep_query(handle_, &attributes) != UCS_OK) return {};
  std::error_code ignored;
  return socket_address::from_native(
      reinterpret_cast<const ::sockaddr*>(&attributes.local_sockaddr),
      sizeof attributes.local_sockaddr, ignored);
}

void ucx_endpoint::start_drop() noexcept {
  if (handle_ == nullptr) return;
  if (!detects_failure_ && transfers_ > 0) {
    // UCX refuses to force such an endpoint, and a flush would wait for the peer: it goes with its
    // worker.
    handle_ = nullptr;
    reach(stage::gone);
    return;
  }
  ucp_request_param_t params = {};
  params.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  if (detects_failure_) {
    params.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
    params.flags = UCP_EP_CLOSE_FLAG_FORCE;
  }
  params.cb.send = &ucx_endpoint::on_closed;
  params.user_data = this;
  reach(stage::closing);
  ucs_status_ptr_t started = worker_.api().ep_close_nbx(std::exchange(handle_, nullptr), &params);
  worker_.socket_closed();
  // An endpoint that could not be closed may report until its worker goes that it was lost.
  if (UCS_PTR_IS_ERR(started)) {
    reach(stage::kept);
  } else if (!UCS_PTR_IS_PTR(started)) {
    reach(stage::gone);
  }
}

void ucx_endpoint::on_closed(void* request, ucs_status_t, void* self) {
  auto& endpoint = *static_cast<ucx_endpoint*>(self);
  const ucx_callback scope(endpoint.worker_, request);
  endpoint.reach(stage::gone);
  endpoint.owner_.let_go();
}

}  // namespace ucx::detail
