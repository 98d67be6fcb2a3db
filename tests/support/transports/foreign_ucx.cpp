#include "support/transports/foreign_ucx.hpp"

#include <ucp/api/ucp.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace ucx::test {
namespace {

void check(ucs_status_t status, const char* what) {
  if (status != UCS_OK) throw std::runtime_error(std::string(what) + ucs_status_string(status));
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& each : names) all.append(all.empty() ? "" : ",").append(each);
  return all;
}

ucs_thread_mode_t mode_for(foreign_threads used_by) noexcept {
  switch (used_by) {
    case foreign_threads::one:
      return UCS_THREAD_MODE_SINGLE;
    case foreign_threads::one_by_one:
      return UCS_THREAD_MODE_SERIALIZED;
    case foreign_threads::any:
      break;
  }
  return UCS_THREAD_MODE_MULTI;
}

/// Settings, until they are used.
class settings {
 public:
  settings() { check(ucp_config_read(nullptr, nullptr, &all_), "no configuration: "); }
  ~settings() { ucp_config_release(all_); }
  settings(const settings&) = delete;
  settings& operator=(const settings&) = delete;

  void set(const char* key, const std::vector<std::string>& names) {
    if (names.empty()) return;
    check(ucp_config_modify(all_, key, joined(names).c_str()), "no such setting: ");
  }
  const ucp_config_t* all() const noexcept { return all_; }

 private:
  ucp_config_t* all_ = nullptr;
};

}  // namespace

ucp_context* make_foreign_context(const context_options& alike, foreign_threads used_by) {
  settings chosen;
  chosen.set("TLS", alike.transports);
  chosen.set("NET_DEVICES", alike.devices);
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.mt_workers_shared = used_by == foreign_threads::one ? 0 : 1;
  if (includes(alike.features, feature::rma)) params.features |= UCP_FEATURE_RMA;
  if (includes(alike.features, feature::am)) params.features |= UCP_FEATURE_AM;
  if (includes(alike.features, feature::wakeup)) params.features |= UCP_FEATURE_WAKEUP;
  ucp_context_h made = nullptr;
  check(ucp_init(&params, chosen.all(), &made), "no context: ");
  return made;
}

ucp_worker* make_foreign_worker(ucp_context* of, foreign_threads used_by) {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = mode_for(used_by);
  ucp_worker_h made = nullptr;
  check(ucp_worker_create(of, &params, &made), "no worker: ");
  return made;
}

void give_back(ucp_context* made) noexcept { ucp_cleanup(made); }
void give_back(ucp_worker* made) noexcept { ucp_worker_destroy(made); }

adopted_context_options told_of(const context_options& alike, ownership owner) {
  adopted_context_options told;
  told.features = alike.features;
  told.share_memory = alike.share_memory;
  told.owner = owner;
  return told;
}

context adopt_context(const context_options& alike) {
  ucp_context* const made = make_foreign_context(alike);
  try {
    return context::adopt(made, told_of(alike, ownership::take));
  } catch (...) {
    give_back(made);
    throw;
  }
}

worker adopt_worker(const context& parent, const worker_options& options) {
  // The loop of `external` may be another thread's: UCX 1.18 looks which one it is.
  const bool may_be_one =
      options.progress == progress_mode::caller || options.progress == progress_mode::automatic;
  const bool is_one = may_be_one && options.thread_mode != thread_mode::multi;
  ucp_worker* const made = make_foreign_worker(
      parent.native_handle(), is_one ? foreign_threads::one : foreign_threads::one_by_one);
  try {
    return worker::adopt(parent, made, ownership::take, options);
  } catch (...) {
    give_back(made);
    throw;
  }
}

}  // namespace ucx::test
