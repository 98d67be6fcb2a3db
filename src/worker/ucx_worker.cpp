#include "worker/ucx_worker.hpp"

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "base/one_per_process.hpp"
#include "ucp/rdma.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/shared_memory.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// The workers of UCX's that this library drives, whatever their contexts are.
struct claimed_workers {
  std::mutex mutex;
  std::set<ucp_worker_h> handles;
};

/// Workers may outlive static objects.
constinit one_per_process<claimed_workers> all_claimed_workers;

}  // namespace

result<void> ucx_worker::create(const std::string& name) {
  // UCX would not return, or would look for memory in each round.
  if (any_is_rdma(context_.resources()) && !context_.api().may_lock(memory_locked_by_worker)) {
    return failure{errc::no_lockable_memory,
                   "making a worker with RDMA hardware: " + words_of_lack_to_lock()};
  }
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  // Our lock is outside of every call, so UCX sees one thread at a time.
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  if (!name.empty()) {
    params.field_mask |= UCP_WORKER_PARAM_FIELD_NAME;
    params.name = name.c_str();
  }
  const ucs_status_t created = context_.api().worker_create(context_.handle(), &params, &handle_);
  if (created == UCS_OK) return claim();
  handle_ = nullptr;
  failure why{worker_error(created, context_.resources()),
              "making a worker (UCX: " + words(created) + ")", created};
  if (why.code == errc::no_shared_memory) {
    why.text += ": /dev/shm has " + std::to_string(free_shared_memory()) + " bytes free";
  } else {
    why.text += rdma_advice(context_.api(), created, context_.resources());
  }
  return why;
}

result<void> ucx_worker::claim() {
  claimed_workers& known = all_claimed_workers.get();
  const std::lock_guard guard(known.mutex);
  is_claimed_ = known.handles.insert(handle_).second;
  if (is_claimed_) return {};
  return failure{errc::already_exists,
                 "adopting a worker of UCX's that this library drives already"};
}

void ucx_worker::let_go() noexcept {
  if (!std::exchange(is_claimed_, false)) return;
  claimed_workers* const known = all_claimed_workers.find();
  if (known == nullptr) return;
  const std::lock_guard guard(known->mutex);
  known->handles.erase(handle_);
}

result<void> ucx_worker::look_at(bool threads) {
  result<worker_attributes> told = worker_attributes();
  const bool has_messages = context_.has(feature::am);
  if (has_messages || (threads && !context_.single_threaded())) told = attributes();
  if (!told) return told.why();
  // Ours can be called from any thread, one at a time.
  if (threads && (context_.single_threaded() || told->thread_mode == "single")) {
    return failure{errc::not_supported,
                   "adopting a worker whose thread mode allows only one thread"};
  }
  if (context_.has(feature::wakeup)) {
    const ucs_status_t status = context_.api().worker_get_efd(handle_, &event_fd_);
    if (status != UCS_OK) {
      event_fd_ = -1;
      return failure{resource_error(status),
                     "asking for a worker's event descriptor (UCX: " + words(status) + ")", status};
    }
  }
  if (has_messages) largest_header_ = told->max_header_size;
  return {};
}

void ucx_worker::destroy() noexcept {
  let_go();
  if (is_borrowed_) return;
  if (!context_.leaves_ucx()) return context_.api().worker_destroy(handle_);
  context_.log().write(log_level::warning,
                       "UCX has closed a port: its worker is left as it is, with its memory and "
                       "descriptors, for its end could end the process (UCX 1.13)");
}

result<worker_attributes> ucx_worker::attributes() const {
  ucp_worker_attr_t asked = {};
  asked.field_mask = UCP_WORKER_ATTR_FIELD_NAME | UCP_WORKER_ATTR_FIELD_THREAD_MODE;
  if (context_.has(feature::am)) asked.field_mask |= UCP_WORKER_ATTR_FIELD_MAX_AM_HEADER;
  const ucs_status_t status = context_.api().worker_query(handle_, &asked);
  if (status != UCS_OK)
    return failure{make_error(status), "asking for a worker's attributes", status};
  worker_attributes made;
  made.name = asked.name;
  made.thread_mode = thread_mode_name(asked.thread_mode);
  if (context_.has(feature::am)) made.max_header_size = asked.max_am_header;
  return made;
}

result<worker_address> ucx_worker::address() const {
  ucp_api& api = context_.api();
  ucp_address_t* bytes = nullptr;
  std::size_t length = 0;
  const ucs_status_t status = api.worker_get_address(handle_, &bytes, &length);
  if (status != UCS_OK) return failure{make_error(status), "asking for a worker's address", status};
  const auto release = [&api, this](ucp_address_t* told) {
    api.worker_release_address(handle_, told);
  };
  const std::unique_ptr<ucp_address_t, decltype(release)> owned(bytes, release);
  return worker_address::from_native({reinterpret_cast<const std::byte*>(bytes), length});
}

bool ucx_worker::arm() noexcept {
  return event_fd_ >= 0 && context_.api().worker_arm(handle_) == UCS_OK;
}

void ucx_worker::signal() noexcept {
  if (event_fd_ >= 0) context_.api().worker_signal(handle_);
}

}  // namespace ucx::detail
