#include "detail/context_core.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>
#include <utility>

#include "detail/configuration.hpp"
#include "detail/region_core.hpp"
#include "detail/resource_error.hpp"
#include "detail/status.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Payloads of one segment: what is left beside our header and UCX's, in whole pages. Answers to
/// reads are slower again in larger pieces than half a MiB, because sender and receiver then
/// overlap less; writes are not.
constexpr std::size_t page = 4096;
constexpr std::size_t largest_answer = std::size_t{512} << 10U;
constexpr std::size_t largest_write = std::size_t{4} << 20U;

std::size_t piece_of_segment(std::size_t segment, std::size_t largest) noexcept {
  const std::size_t pages = segment / page;
  return pages < 3 ? page : std::min((pages - 1) * page, largest);
}

std::uint64_t ucp_features(feature set) noexcept {
  std::uint64_t features = 0;
  if (includes(set, feature::rma)) features |= UCP_FEATURE_RMA;
  if (includes(set, feature::am)) features |= UCP_FEATURE_AM;
  if (includes(set, feature::wakeup)) features |= UCP_FEATURE_WAKEUP;
  if (includes(set, feature::tag)) features |= UCP_FEATURE_TAG;
  if (includes(set, feature::stream)) features |= UCP_FEATURE_STREAM;
  return features;
}

/// Options win over the environment.
bool asks_for_ipv6(const context_options& options) {
  for (const char* key : {"TCP_AF_PRIO", "AF_PRIO"}) {
    const auto set = options.configuration.find(key);
    if (set != options.configuration.end()) return set->second.starts_with("inet6");
  }
  const char* variable = std::getenv("UCX_TCP_AF_PRIO");
  return variable != nullptr && std::string_view(variable).starts_with("inet6");
}

bool is_same_host(std::string_view transport) noexcept {
  static constexpr std::array<std::string_view, 9> names{"posix", "sysv", "cma", "self", "xpmem",
                                                         "knem",  "shm",  "sm",  "mm"};
  return std::find(names.begin(), names.end(), transport) != names.end();
}

}  // namespace

context_core::context_core(ucp_api& api, const context_options& options)
    : api_(api), features_(options.features) {
  std::random_device entropy;
  incarnation_ = (std::uint64_t{entropy()} << 32U) | entropy();
  same_host_only_ = !options.transports.empty() &&
                    std::all_of(options.transports.begin(), options.transports.end(),
                                [](const std::string& t) { return is_same_host(t); });
}

std::shared_ptr<context_core> context_core::make(ucp_api& api, const context_options& options,
                                                 std::string& what, std::error_code& ec) {
  std::shared_ptr<context_core> made(new context_core(api, options));
  detail::configuration config(api, options, what, ec);
  if (ec) return nullptr;
  made->answer_piece_ = piece_of_segment(config.segment_size(), largest_answer);
  made->write_piece_ = piece_of_segment(config.segment_size(), largest_write);
  made->configuration_ = config.values();
  made->speaks_ipv6_ = asks_for_ipv6(options);

  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = ucp_features(options.features);
  params.mt_workers_shared = 1;
  if (!options.name.empty()) {
    params.field_mask |= UCP_PARAM_FIELD_NAME;
    params.name = options.name.c_str();
  }
  const ucs_status_t status = api.init(&params, config.handle(), &made->handle_);
  if (status != UCS_OK) {
    made->handle_ = nullptr;
    ec = resource_error(status);
    what = "making a context (UCX: " + words(status) + ")";
    if (ec == errc::unreachable || ec == errc::unexpected || ec == errc::io_error) {
      if (!options.devices.empty() || !options.transports.empty()) {
        ec = errc::bad_configuration;
        what += ": none of the transports and devices that were asked for is present";
      }
    }
    return nullptr;
  }
  made->read_resources();
  for (const std::string& device : options.devices) {
    const bool present = std::any_of(
        made->resources_.begin(), made->resources_.end(), [&](const std::string& resource) {
          return resource.substr(resource.find('/') + 1) == device.substr(0, device.find(':'));
        });
    if (!present) {
      ec = errc::bad_configuration;
      what = "making a context: there is no device \"" + device +
             "\" with the transports that are allowed";
      return nullptr;
    }
  }
  return made;
}

context_core::~context_core() {
  if (handle_ != nullptr) api_.cleanup(handle_);
}

/// UCX prints a line a resource: "# resource 0  :  md 0  dev 0  flags -- tcp/lo".
void context_core::read_resources() {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* file = ::open_memstream(&text, &size);
  if (file == nullptr) return;
  api_.context_print_info(handle_, file);
  std::fclose(file);
  std::string_view rest(text, size);
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find("resource ") == std::string_view::npos) continue;
    const std::size_t last = line.find_last_of(' ');
    if (last == std::string_view::npos) continue;
    std::string resource(line.substr(last + 1));
    if (resource.find('/') != std::string::npos) resources_.push_back(std::move(resource));
  }
  std::free(text);
}

std::uint64_t context_core::next_region_id() noexcept {
  const std::unique_lock guard(regions_mutex_);
  return ++last_region_;
}

void context_core::add_region(region_core& region) {
  const std::unique_lock guard(regions_mutex_);
  regions_.emplace(region.id(), &region);
}

void context_core::remove_region(region_core& region) noexcept {
  const std::unique_lock guard(regions_mutex_);
  regions_.erase(region.id());
}

region_core* context_core::begin_access(std::uint64_t id, std::error_code& ec) noexcept {
  const std::shared_lock guard(regions_mutex_);
  const auto found = regions_.find(id);
  if (found != regions_.end()) {
    found->second->begin_access();
    return found->second;
  }
  ec = id != 0 && id <= last_region_ ? errc::revoked : errc::no_such_region;
  return nullptr;
}

void context_core::add_worker(std::weak_ptr<worker_core> worker) {
  const std::lock_guard guard(workers_mutex_);
  std::erase_if(workers_, [](const std::weak_ptr<worker_core>& w) { return w.expired(); });
  workers_.push_back(std::move(worker));
}

void context_core::drain_region(region_core& region) noexcept {
  // Outside of the lock: draining runs handlers, which may make workers or withdraw regions.
  std::vector<std::shared_ptr<worker_core>> workers;
  {
    const std::lock_guard guard(workers_mutex_);
    for (const std::weak_ptr<worker_core>& worker : workers_) workers.push_back(worker.lock());
  }
  for (const std::shared_ptr<worker_core>& worker : workers) {
    if (region.idle()) return;
    if (worker) worker->drain(region);
  }
}

}  // namespace ucx::detail
