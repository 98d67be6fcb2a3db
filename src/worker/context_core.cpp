#include "worker/context_core.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <random>
#include <string_view>
#include <utility>

#include "base/forked_child.hpp"
#include "carrier/carrier_api.hpp"
#include "carrier/carrier_failure.hpp"
#include "carrier/named_certificates.hpp"
#include "carrier/segment.hpp"
#include "carrier/tls.hpp"
#include "os/device_name.hpp"
#include "ucp/configuration.hpp"
#include "ucp/context_description.hpp"
#include "ucp/device_choice.hpp"
#include "ucp/rdma.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/status.hpp"
#include "ucp/transport_group.hpp"
#include "ucx/error.hpp"
#include "worker/device_plane.hpp"
#include "worker/process_watcher.hpp"

namespace ucx::detail {
namespace {

std::uint64_t ucp_features(feature set) noexcept {
  std::uint64_t features = 0;
  if (includes(set, feature::rma)) features |= UCP_FEATURE_RMA;
  if (includes(set, feature::am)) features |= UCP_FEATURE_AM;
  if (includes(set, feature::wakeup)) features |= UCP_FEATURE_WAKEUP;
  if (includes(set, feature::tag)) features |= UCP_FEATURE_TAG;
  if (includes(set, feature::stream)) features |= UCP_FEATURE_STREAM;
  return features;
}

bool asks_for_ipv6(const context_options& options) {
  const char* variable = std::getenv("UCX_TCP_AF_PRIO");
  const bool inherits = variable != nullptr && std::string_view(variable).starts_with("inet6");
  if (variable != nullptr && options.configuration_precedence == precedence::environment)
    return inherits;
  for (const char* key : {"TCP_AF_PRIO", "AF_PRIO"}) {
    const auto set = options.configuration.find(key);
    if (set != options.configuration.end()) return set->second.starts_with("inet6");
  }
  return inherits;
}

/// Behind what can not be done in a child of fork().
constexpr const char* no_ucx_here =
    " (UCX does not survive fork(), and a process from which this one was forked had a context of "
    "UCX's; here contexts over sockets can be made: ucxs, ucx+tcp, ucx+unix)";

feature without(feature set, feature gone) noexcept {
  return static_cast<feature>(static_cast<unsigned>(set) & ~static_cast<unsigned>(gone));
}

/// So much goes before a short message that comes behind it, with a page for what is beside it.
constexpr std::size_t longest_socket_piece = (std::size_t{256} << 10U) + 4096;
static_assert(longest_socket_piece <= segment_head::longest_payload);

bool names(const context_options& options, std::string_view transport) noexcept {
  return std::find(options.transports.begin(), options.transports.end(), transport) !=
         options.transports.end();
}

/// Returns what a context of sockets can not do of this; empty where it can.
std::string complaint_about_sockets(const context_options& options) {
  const std::string transport =
      std::string("the transport \"") + (asks_for_tls(options) ? tls_transport : socket_transport);
  if (options.transports.size() > (asks_for_unix_beside(options) ? 2 : 1)) {
    return transport + "\" is no transport of UCX's, and has no other one beside it";
  }
  if (!options.devices.empty()) {
    return transport +
           "\" takes no devices: the address that is bound or connected to "
           "decides";
  }
  if (!options.configuration.empty()) {
    return transport + "\" has no keys of UCX's, as " + options.configuration.begin()->first;
  }
  return trusted_peers{options.peer_users, options.peer_groups}.complaint();
}

constexpr const char* needs_ucx =
    "RDMA hardware is for connections by UCX alone: a server by --ucx, whose URL is ucx://";

/// Returns the ports of RDMA hardware that have no hindrance, with commas.
std::string usable_ports(const ucp_api& ucx) {
  std::string names;
  for (const rdma_port& each : ucx.rdma_ports()) {
    if (each.is_usable() && each.hindrance.empty()) {
      names.append(names.empty() ? "" : ", ").append(each.name);
    }
  }
  return names;
}

/// Returns whether a later try may succeed.
bool may_be_had_later(std::error_code why) noexcept {
  return why == errc::no_memory || why == errc::busy || why == errc::too_many_files;
}

}  // namespace

bool asks_for_sockets(const context_options& options) noexcept {
  return names(options, socket_transport) || names(options, tls_transport);
}

bool asks_for_tls(const context_options& options) noexcept { return names(options, tls_transport); }

bool asks_for_unix_beside(const context_options& options) noexcept {
  return asks_for_tls(options) && names(options, unix_transport);
}

context_core::context_core(ucp_api& api, const context_options& options,
                           std::unique_ptr<logger> log)
    : counted_(api.is_ucx()),
      api_(api),
      log_(std::move(log)),
      processes_(std::make_unique<process_watcher>()),
      features_(options.features),
      shares_memory_(options.share_memory),
      requires_rdma_(options.require_rdma) {
  std::random_device entropy;
  incarnation_ = (std::uint64_t{entropy()} << 32U) | entropy();
  same_host_only_ = !options.transports.empty() &&
                    std::all_of(options.transports.begin(), options.transports.end(),
                                [](const std::string& t) { return is_same_host(t); });
}

result<std::shared_ptr<context_core>> context_core::make(ucp_api& api,
                                                         const context_options& options,
                                                         const device_limit& limit) {
  if (asks_for_sockets(options)) return make_of_sockets(api, options, limit);
  if (lost_ucx_by_fork())
    return failure{errc::forked_child, std::string("making a context") + no_ucx_here};
  if (options.transports.size() == 1 && names(options, ucx_transport)) {
    context_options by_choice = options;
    by_choice.transports.clear();
    return make(api, by_choice, limit);
  }
  auto log = logger::make(options.log, options.name);
  if (!log) return log.why();
  std::shared_ptr<context_core> made(new context_core(api, options, *std::move(log)));
  device_choice chosen(api, options, limit);
  made->speaks_ipv6_ = asks_for_ipv6(options);
  auto config = made->init(options, chosen, expected_rdma::as_shown);
  if (!config) return config.why();
  const bool has_rdma = any_is_rdma(made->resources_);
  const bool left_out = has_rdma && !api.may_lock(memory_locked_by_worker);
  if (left_out) {
    if (const auto left = chosen.leave_out_rdma(made->resources_); !left) return left.why();
  }
  // UCX may have no transport for hardware that the system shows.
  if (left_out || (!has_rdma && config->counts_on_rdma())) {
    api.cleanup(std::exchange(made->handle_, nullptr));
    config = made->init(options, chosen, expected_rdma::none);
    if (!config) return config.why();
  }
  if (options.configuration_precedence == precedence::environment &&
      std::getenv("UCX_TLS") != nullptr) {
    made->same_host_only_ = made->resources_are_of_one_host();
  }
  if (const auto checked = chosen.check(made->resources_, config->withheld()); !checked)
    return checked.why();
  made->unused_ = chosen.unused();
  if (options.require_rdma && !any_is_rdma(made->resources_)) {
    std::string text =
        "making a context: of the transports that are present and allowed, none is RDMA hardware" +
        chosen.limited();
    for (const std::string& each : made->unused_) text += "; " + each;
    return failure{errc::no_rdma, text};
  }
  chosen.log(*made->log_, made->resources_);
  made->recipe_ = recipe{chosen.options(), chosen.rest()};
  return made;
}

result<std::shared_ptr<context_core>> context_core::make_of_sockets(ucp_api& ucx,
                                                                    const context_options& options,
                                                                    const device_limit& limit) {
  if (const std::string wrong = complaint_about_sockets(options); !wrong.empty()) {
    return failure{errc::bad_configuration, "making a context: " + wrong};
  }
  if (options.require_rdma) {
    return failure{errc::no_rdma, "making a context: a transport over sockets is no RDMA hardware"};
  }
  auto log = logger::make(options.log, options.name);
  if (!log) return log.why();
  std::shared_ptr<context_core> made(new context_core(socket_api(), options, *std::move(log)));
  made->features_ = without(options.features, feature::rma);
  made->speaks_ipv6_ = true;
  made->take_segment(longest_socket_piece);
  ucp_params_t params = {};
  if (!options.name.empty()) {
    params.field_mask |= UCP_PARAM_FIELD_NAME;
    params.name = options.name.c_str();
  }
  socket_configuration chosen;
  chosen.trusted = {options.peer_users, options.peer_groups};
  chosen.log = made->log_.get();
  if (asks_for_tls(options)) {
    tls_settings settings;
    settings.tokens = options.token_file;
    settings.towards = limit.towards;
    settings.log = made->log_.get();
    settings.certificates =
        limit.is_of_server ? options.certificates : named_certificates(options.certificates);
    settings.accepts_certificates = names_any(options.certificates);
    auto tls = make_tls(settings);
    if (!tls) return failure{tls.why().code, "TLS: " + tls.why().text};
    chosen.tls = made->tls_ = *std::move(tls);
    made->has_unix_beside_ = chosen.clear_unix = asks_for_unix_beside(options);
  }
  if (!limit.without_unix.empty()) made->do_without(limit.without_unix);
  if (const std::string ports = usable_ports(ucx); !ports.empty() && !limit.is_near) {
    made->do_without(ports + ": " + needs_ucx);
  }
  const ucs_status_t status =
      made->api_.init(&params, reinterpret_cast<const ucp_config_t*>(&chosen), &made->handle_);
  if (status != UCS_OK) return failure{resource_error(status), "making a context"};
  made->resources_ = resources_of(made->api_, made->handle_);
  made->log_->write(log_level::info, "context of sockets, without UCX");
  return made;
}

/// Tells of what is there, and not for a context of sockets.
void context_core::do_without(std::string unused) {
  log_->write(log_level::info, "not used: " + unused);
  unused_.push_back(std::move(unused));
}

result<configuration> context_core::init(const context_options& options,
                                         const device_choice& chosen, expected_rdma hardware) {
  auto config = detail::configuration::make(api_, chosen.options(), chosen.rest(), hardware);
  if (!config) return config.why();
  take_segment(config->segment_size());
  configuration_ = config->values();

  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_MT_WORKERS_SHARED;
  params.features = ucp_features(options.features);
  params.mt_workers_shared = 1;
  if (!options.name.empty()) {
    params.field_mask |= UCP_PARAM_FIELD_NAME;
    params.name = options.name.c_str();
  }
  const ucs_status_t status = api_.init(&params, config->handle(), &handle_);
  if (status != UCS_OK) {
    handle_ = nullptr;
    failure why{resource_error(status), "making a context (UCX: " + words(status) + ")", status};
    const bool none_there =
        why.code == errc::unreachable || why.code == errc::unexpected || why.code == errc::io_error;
    if (none_there && (!chosen.options().devices.empty() || !options.transports.empty())) {
      why.code = errc::bad_configuration;
      why.text += ": none of the transports and devices that were asked for is present" +
                  chosen.limited() + chosen.present();
    }
    return why;
  }
  resources_ = resources_of(api_, handle_);
  return config;
}

result<std::shared_ptr<context_core>> context_core::adopt(ucp_api& api, ucp_context_h handle,
                                                          const adopted_context_options& options) {
  const char* const adopting = "adopting a context of UCX's";
  if (lost_ucx_by_fork()) return failure{errc::forked_child, std::string(adopting) + no_ucx_here};
  if (handle == nullptr) return failure{errc::invalid_argument, adopting};
  context_options alike;
  alike.features = options.features;
  alike.log = options.log;
  alike.share_memory = options.share_memory;
  auto log = logger::make(alike.log, alike.name);
  if (!log) return log.why();
  std::shared_ptr<context_core> made(new context_core(api, alike, *std::move(log)));
  made->owned_ = false;
  made->handle_ = handle;
  const result<context_attributes> told = made->attributes();
  if (!told) return failure{told.why().code, adopting, told.why().ucx_status};
  made->single_threaded_ = told->thread_mode == "single";
  made->speaks_ipv6_ = asks_for_ipv6(alike);
  made->take_segment(options.segment_size);
  made->resources_ = resources_of(api, handle);
  made->same_host_only_ = made->resources_are_of_one_host();
  made->owned_ = options.owner == ownership::take;
  return made;
}

context_core::~context_core() {
  if (!leave_to_parent(plane_) && plane_) plane_->close();
  if (handle_ != nullptr && owned_ && !leaves_ucx_) api().cleanup(handle_);
}

result<std::shared_ptr<device_plane>> context_core::plane() {
  if (is_inherited()) return failure{errc::forked_child, "moving device memory by RMA"};
  std::unique_lock guard(plane_mutex_);
  if (plane_) {
    std::optional<failure> why_not = plane_->why_not_made();
    if (!why_not) return plane_;
    if (!may_be_had_later(why_not->code)) return *std::move(why_not);
    plane_.reset();
  }
  if (why_no_plane_) return *why_no_plane_;
  auto made = make_plane();
  if (made) return plane_ = *std::move(made);
  failure why_not = std::move(made.why());
  if (!may_be_had_later(why_not.code)) why_no_plane_ = why_not;
  guard.unlock();
  const bool was_asked_for = recipe_ && recipe_->options.device_rma;
  if (was_asked_for && log_->writes(log_level::info)) {
    log_->write(log_level::info, "device memory does not go by RMA between hosts: " + why_not.text);
  }
  return why_not;
}

result<std::shared_ptr<device_plane>> context_core::made_plane() {
  auto found = plane();
  if (!found) return found;
  if (auto made = (*found)->wait_made(); !made) return std::move(made).why();
  return found;
}

result<std::shared_ptr<device_plane>> context_core::make_plane() const {
  if (!is_of_ucx()) {
    return failure{errc::not_supported, "the connections are sockets of this library, without UCX"};
  }
  if (!has(feature::rma)) {
    return failure{errc::feature_disabled, "the context was made without feature::rma"};
  }
  if (!recipe_) return failure{errc::not_supported, "the context of UCX's was made elsewhere"};
  if (!recipe_->options.device_rma) {
    return failure{errc::not_supported, "context_options::device_rma is off"};
  }
  if (!any_has_rma(resources_)) {
    return failure{errc::not_supported, "the context has no RDMA hardware with GET and PUT"};
  }
  return device_plane::make(api(), recipe_->options, recipe_->devices, log_);
}

void context_core::port_is_lost() noexcept {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  api().get_version(&major, &minor, &release);
  if (major == 1 && minor < 14) leaves_ucx_ = true;
}

void context_core::take_segment(std::size_t segment) noexcept {
  segment_size_ = segment;
  pieces_ = piece_sizes::of_segment(segment);
}

bool context_core::resources_are_of_one_host() const noexcept {
  return !resources_.empty() &&
         std::all_of(resources_.begin(), resources_.end(),
                     [](const std::string& lane) { return is_same_host(transport_of(lane)); });
}

result<context_attributes> context_core::attributes() const {
  ucp_context_attr_t asked = {};
  asked.field_mask = UCP_ATTR_FIELD_NAME | UCP_ATTR_FIELD_THREAD_MODE |
                     UCP_ATTR_FIELD_MEMORY_TYPES | UCP_ATTR_FIELD_REQUEST_SIZE;
  const ucs_status_t status = api().context_query(handle_, &asked);
  if (status != UCS_OK)
    return failure{make_error(status), "asking for a context's attributes", status};
  context_attributes made;
  made.name = asked.name;
  made.thread_mode = thread_mode_name(asked.thread_mode);
  made.request_size = asked.request_size;
  static constexpr std::array<std::pair<ucs_memory_type_t, memory_kind>, 4> kinds{{
      {UCS_MEMORY_TYPE_HOST, memory_kind::host},
      {UCS_MEMORY_TYPE_CUDA, memory_kind::cuda},
      {UCS_MEMORY_TYPE_CUDA_MANAGED, memory_kind::cuda_managed},
      {UCS_MEMORY_TYPE_ROCM, memory_kind::rocm},
  }};
  for (const auto& [type, kind] : kinds) {
    if ((asked.memory_types & (std::uint64_t{1} << type)) != 0) made.memory.push_back(kind);
  }
  return made;
}

std::string context_core::words_of(ucs_status_t status) const {
  if (is_of_ucx()) return "UCX: " + words(status);
  const auto known = carrier_failure_of(status);
  if (!known) return "socket: " + words(status);
  return std::string(known->layer) + ": " + std::string(known->words);
}

/// Over sockets the peer's first bytes tell its version.
errc context_core::loss_of(ucs_status_t status, connection_stage stage) const noexcept {
  if (is_of_ucx()) return to_loss(status, stage);
  if (status == UCS_ERR_UNSUPPORTED) return errc::version_mismatch;
  if (const auto known = carrier_failure_of(status)) return known->code;
  return to_loss(status, stage);
}

std::string context_core::description() const { return description_of(api(), handle_); }

bool context_core::reads_processes() const noexcept {
  return std::any_of(resources_.begin(), resources_.end(),
                     [](std::string_view each) { return each.starts_with("cma/"); });
}

}  // namespace ucx::detail
