// One call of the seam in progress: private to the sources of `fake_ucp`.
#pragma once

#include <string>
#include <utility>

#include "support/fake_ucp/callback_scope.hpp"
#include "support/fake_ucp/fake_ucp.hpp"

namespace ucx::test {

/// Holds the network's lock, counts the call, and knows what was planned for it.
class api_entry {
 public:
  api_entry(fake_ucp& api, call which, sim::worker_object* used = nullptr);
  ~api_entry();
  api_entry(const api_entry&) = delete;
  api_entry& operator=(const api_entry&) = delete;

  sim::lock_type& lock() noexcept { return lock_; }
  const fault& verdict() const noexcept { return verdict_; }
  /// Returns whether the call has to fail at once, with `verdict().status`.
  bool refused() const noexcept { return verdict_.status != UCS_OK && !verdict_.late; }
  /// Returns what a request completes with.
  ucs_status_t late_status() const noexcept { return verdict_.late ? verdict_.status : UCS_OK; }

  /// Returns the object behind `handle`, or null, which is a violation.
  template <class Object>
  Object* find(const sim::registry<Object>& objects, const void* handle) {
    Object* const found = objects.find(handle);
    if (found == nullptr) violate("was called with a handle that does not exist (any more)");
    return found;
  }
  void violate(const std::string& what);

 private:
  const callback_scope outside_{false};
  sim::fabric& network_;
  sim::process_state& process_;
  call which_;
  sim::worker_object* used_ = nullptr;  // set where this call is the outermost on its worker
  sim::lock_type lock_;
  fault verdict_;
};

inline ucs_status_ptr_t status_pointer(ucs_status_t status) {
  return status == UCS_OK ? nullptr
                          : reinterpret_cast<ucs_status_ptr_t>(static_cast<std::intptr_t>(status));
}

/// Returns the worker behind a handle, which may be stale but was ours.
inline sim::worker_object* worker_of(ucp_worker_h worker) {
  return reinterpret_cast<sim::worker_object*>(worker);
}

/// Returns the worker behind an endpoint's handle, which may be stale but was ours.
inline sim::worker_object* worker_of(ucp_ep_h endpoint) {
  return reinterpret_cast<sim::endpoint_object*>(endpoint)->worker;
}

inline sim::side& side_of(sim::endpoint_object& endpoint) {
  return endpoint.link->sides[static_cast<std::size_t>(endpoint.index)];
}

/// Makes what the user holds; its callback and data are those of `params`.
sim::request_ptr make_request(sim::fabric& network, sim::worker_object& worker, call kind,
                              const ucp_request_param_t& params, const fault& planned);

/// Returns the operation's flags, which UCX reads only where the mask says so.
inline std::uint32_t flags_of(const ucp_request_param_t& params) {
  return (params.op_attr_mask & UCP_OP_ATTR_FIELD_FLAGS) != 0 ? params.flags : 0;
}

inline bool denies_inline(const ucp_request_param_t& params) {
  return (params.op_attr_mask & UCP_OP_ATTR_FLAG_NO_IMM_CMPL) != 0;
}

/// Gives a request that completes with the planned late failure, without anything having happened.
ucs_status_ptr_t fail_late(sim::fabric& network, sim::worker_object& worker, call kind,
                           const ucp_request_param_t& params, const fault& planned);

}  // namespace ucx::test
