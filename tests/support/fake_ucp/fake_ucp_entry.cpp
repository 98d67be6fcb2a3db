#include "support/fake_ucp/fake_ucp_entry.hpp"

#include <thread>

namespace ucx::test {
namespace {

// What a test still has to call to take the objects of a killed process apart.
bool is_teardown(call which) {
  switch (which) {
    case call::init:
    case call::worker_create:
    case call::listener_create:
    case call::ep_create:
    case call::ep_flush:
    case call::mem_map:
    case call::rkey_pack:
    case call::ep_rkey_unpack:
    case call::get:
    case call::put:
    case call::am_send:
    case call::am_recv_data:
      return false;
    default:
      return true;
  }
}

fault planned(sim::fabric& network, sim::process_state& process, call which) {
  const fault own = process.faults.next(which);
  const fault common = network.faults.next(which);
  fault result = own.status != UCS_OK || own.delay.count() != 0 ? own : common;
  if (!result.inline_completion) result.inline_completion = common.inline_completion;
  result.damaged = own.damaged || common.damaged;
  if (own.inline_completion) result.inline_completion = own.inline_completion;
  return result;
}

}  // namespace

api_entry::api_entry(fake_ucp& api, call which, sim::worker_object* used)
    : network_(api.network_), process_(api.process_), which_(which) {
  // Looked at before the lock is taken: a second thread that waits for it is inside, too.
  bool shared = false;
  if (used != nullptr && used->threads != UCS_THREAD_MODE_MULTI) {
    std::thread::id nobody;
    if (used->user.compare_exchange_strong(nobody, std::this_thread::get_id())) {
      used_ = used;
    } else {
      shared = nobody != std::this_thread::get_id();
    }
  }
  lock_ = sim::lock_type(network_.mutex);
  ++process_.calls[static_cast<std::size_t>(which)];
  verdict_ = planned(network_, process_, which);
  if (shared) violate("was called while another thread was inside a call on the same worker");
  if (process_.killed && !is_teardown(which)) {
    ++process_.calls_after_death;
    verdict_ = {.status = UCS_ERR_CONNECTION_RESET};
  }
}

api_entry::~api_entry() {
  if (used_ != nullptr) used_->user.store({});
}

void api_entry::violate(const std::string& what) {
  network_.violate(process_.name + ": " + std::string(to_string(which_)) + " " + what);
}

sim::request_ptr make_request(sim::fabric& network, sim::worker_object& worker, call kind,
                              const ucp_request_param_t& params, const fault& planned) {
  auto made = std::make_shared<sim::request_object>();
  made->worker = &worker;
  made->kind = kind;
  made->delay = planned.delay;
  made->has_callback = (params.op_attr_mask & UCP_OP_ATTR_FIELD_CALLBACK) != 0;
  if (made->has_callback) made->on_sent = params.cb.send;
  if ((params.op_attr_mask & UCP_OP_ATTR_FIELD_USER_DATA) != 0) made->user_data = params.user_data;
  if ((params.op_attr_mask & UCP_OP_ATTR_FIELD_REQUEST) != 0) {
    network.violate("a request in the caller's memory: the fake does not have that");
  }
  network.requests.emplace(made.get(), made);
  return made;
}

ucs_status_ptr_t fail_late(sim::fabric& network, sim::worker_object& worker, call kind,
                           const ucp_request_param_t& params, const fault& planned) {
  auto request = make_request(network, worker, kind, params, planned);
  network.after(network.link.latency, [&network, request, status = planned.status] {
    network.complete(request, status);
  });
  return request.get();
}

}  // namespace ucx::test
