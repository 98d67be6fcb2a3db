#include "worker/plane_worker.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "ucp/configuration.hpp"
#include "ucp/context_description.hpp"
#include "ucp/rdma.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/status.hpp"
#include "ucx/error.hpp"
#include "ucx/version.hpp"

namespace ucx::detail {
namespace {

constexpr version_number first_that_refuses{1, 21};

bool names_cuda(const std::vector<std::string>& transports) {
  return std::any_of(transports.begin(), transports.end(),
                     [](const std::string& each) { return each.starts_with("cuda"); });
}

}  // namespace

result<std::unique_ptr<plane_worker>> plane_worker::make(ucp_api& api,
                                                         const context_options& options,
                                                         const std::vector<std::string>& devices) {
  version_number version;
  api.get_version(&version.major, &version.minor, &version.patch);
  if (version < first_that_refuses) {
    return failure{errc::not_supported, "UCX " + to_string(version) +
                                            " can not be told to refuse what it would emulate "
                                            "between hosts, as UCX can from 1.21 on"};
  }
  if (!api.may_lock(memory_locked_by_worker)) {
    return failure{errc::not_supported,
                   "a second worker with RDMA hardware: " + words_of_lack_to_lock()};
  }
  std::unique_ptr<plane_worker> made(new plane_worker(api));
  if (auto ready = made->make_context(options, devices); !ready) return std::move(ready).why();
  if (auto ready = made->make_worker(); !ready) return std::move(ready).why();
  return made;
}

plane_worker::~plane_worker() {
  if (made_.is_inherited()) return;
  if (worker_ != nullptr) destroy_worker();
  if (context_ != nullptr) api_.cleanup(context_);
}

std::string plane_worker::resources() const {
  std::string text;
  for (const std::string& each : resources_of(api_, context_)) {
    text.append(text.empty() ? "" : ", ").append(each);
  }
  return text;
}

result<void> plane_worker::make_context(const context_options& options,
                                        const std::vector<std::string>& devices) {
  context_options alike = options;
  if (!alike.transports.empty() && !names_cuda(alike.transports)) {
    alike.transports.emplace_back("cuda_copy");
  }
  const auto config = configuration::make(api_, alike, devices);
  if (!config) return config.why();
  auto* const changed = const_cast<ucp_config_t*>(config->handle());
  // Protocols of the old kind emulate, whatever the other key says.
  static constexpr std::array<std::pair<const char*, const char*>, 2> without_emulation{{
      {"PROTO_ENABLE", "y"},
      {"PROTO_EMULATION_ENABLE", "n"},
  }};
  for (const auto& [key, value] : without_emulation) {
    const ucs_status_t told = api_.config_modify(changed, key, value);
    if (told == UCS_OK) continue;
    return failure{errc::not_supported,
                   std::string("UCX does not take ") + key + "=" + value + " (" + words(told) + ")",
                   told};
  }
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_WAKEUP;
  params.mt_workers_shared = 1;
  const ucs_status_t made = api_.init(&params, config->handle(), &context_);
  if (made == UCS_OK) return check_memory();
  context_ = nullptr;
  return failure{resource_error(made), "a second context of UCX's (" + words(made) + ")", made};
}

result<void> plane_worker::check_memory() const {
  ucp_context_attr_t asked = {};
  asked.field_mask = UCP_ATTR_FIELD_MEMORY_TYPES;
  const ucs_status_t status = api_.context_query(context_, &asked);
  const bool known = (asked.memory_types & (std::uint64_t{1} << UCS_MEMORY_TYPE_CUDA)) != 0;
  if (status == UCS_OK && known) return {};
  return failure{errc::not_supported,
                 "UCX was built or set up without memory of CUDA devices (transport cuda_copy)"};
}

result<void> plane_worker::make_worker() {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucs_status_t status = api_.worker_create(context_, &params, &worker_);
  const char* what = "a worker";
  if (status != UCS_OK) worker_ = nullptr;
  if (status == UCS_OK) {
    what = "a worker's event descriptor";
    status = api_.worker_get_efd(worker_, &event_fd_);
  }
  ucp_address_t* bytes = nullptr;
  std::size_t length = 0;
  if (status == UCS_OK) {
    what = "a worker's address";
    status = api_.worker_get_address(worker_, &bytes, &length);
  }
  if (status != UCS_OK) {
    return failure{resource_error(status),
                   std::string(what) + " for device memory (UCX: " + words(status) + ")", status};
  }
  const auto release = [this](ucp_address_t* told) { api_.worker_release_address(worker_, told); };
  const std::unique_ptr<ucp_address_t, decltype(release)> owned(bytes, release);
  const auto* const first = reinterpret_cast<const std::byte*>(bytes);
  address_.assign(first, first + length);
  return {};
}

}  // namespace ucx::detail
