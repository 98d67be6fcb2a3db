// Contexts and configuration of the simulated UCX.
#include <algorithm>
#include <string_view>
#include <utility>

#include "support/fake_ucp/fake_ucp_entry.hpp"

namespace ucx::test {
namespace {

// What UCX 1.13 prints by itself, as far as anybody could ask for it; transports' keys are accepted
// but not printed, as there.
const std::map<std::string, std::string>& defaults() {
  static const std::map<std::string, std::string> values{
      {"NET_DEVICES", "all"},
      {"SHM_DEVICES", "all"},
      {"ACC_DEVICES", "all"},
      {"SELF_DEVICES", "all"},
      {"TLS", "all"},
      {"PROTOS", "all"},
      {"BCOPY_THRESH", "auto"},
      {"RNDV_THRESH", "auto"},
      {"ZCOPY_THRESH", "auto"},
      {"MAX_EAGER_RAILS", "1"},
      {"MAX_RNDV_RAILS", "2"},
      {"SEG_SIZE", "8K"},
      {"KEEPALIVE_INTERVAL", "20s"},
      {"KEEPALIVE_NUM_EPS", "128"},
      {"NUM_EPS", "auto"},
      {"ADAPTIVE_PROGRESS", "y"},
      {"ADDRESS_VERSION", "v1"},
      {"UNIFIED_MODE", "n"},
      {"WARN_INVALID_CONFIG", "y"},
      {"PROTO_ENABLE", "n"},
      {"SOCKADDR_TLS_PRIORITY", "rdmacm,tcp,sockcm"},
  };
  return values;
}

// "rc" stands for "rc_verbs" and "rc_mlx5".
bool is_alias(std::string_view one, std::string_view name) {
  return (one == "rc" || one == "dc" || one == "ud") && name.starts_with(one) &&
         name.substr(one.size()).starts_with('_');
}

bool lists(const std::string& list, std::string_view name) {
  std::string_view rest = list;
  const bool negated = rest.starts_with('^');
  if (negated) rest.remove_prefix(1);
  while (!rest.empty()) {
    const auto comma = rest.find(',');
    const auto one = rest.substr(0, comma);
    if (one == "all" || one == name || is_alias(one, name)) return !negated;
    if (comma == std::string_view::npos) return negated;
    rest.remove_prefix(comma + 1);
  }
  return negated;
}

std::string value_of(const sim::config_object& from, const std::string& key) {
  const auto found = from.values.find(key);
  return found == from.values.end() ? "all" : found->second;
}

// "tcp/lo" is in use where TLS allows tcp, and NET_DEVICES lo.
bool is_allowed(const sim::config_object& by, const sim::lane& lane, bool has_devices) {
  const auto& transport = lane.transport;
  const bool local = transport == "self" || transport == "posix" || transport == "sysv" ||
                     transport == "cma" || (has_devices && transport.starts_with("cuda_"));
  if (!lists(value_of(by, "TLS"), transport)) return false;
  return local || lists(value_of(by, "NET_DEVICES"), lane.device);
}

}  // namespace

void fake_ucp::get_version(unsigned* major, unsigned* minor, unsigned* release) {
  const api_entry in(*this, call::get_version);
  *major = network_.link.version_major;
  *minor = network_.link.version_minor;
  *release = network_.link.version_release;
}

ucs_status_t fake_ucp::config_read(const char*, const char*, ucp_config_t** config) {
  const api_entry in(*this, call::config_read);
  if (in.refused()) return in.verdict().status;
  auto made = std::make_unique<sim::config_object>();
  made->values = defaults();
  *config = reinterpret_cast<ucp_config_t*>(network_.configurations.add(std::move(made)));
  return UCS_OK;
}

void fake_ucp::config_release(ucp_config_t* config) {
  api_entry in(*this, call::config_release);
  if (in.find(network_.configurations, config) != nullptr) network_.configurations.remove(config);
}

ucs_status_t fake_ucp::config_modify(ucp_config_t* config, const char* key, const char* value) {
  api_entry in(*this, call::config_modify);
  auto* const object = in.find(network_.configurations, config);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  const auto& own = network_.link;
  const bool is_old = std::pair(own.version_major, own.version_minor) < std::pair(1U, 21U);
  if (is_old && std::string_view(key) == "PROTO_EMULATION_ENABLE") return UCS_ERR_NO_ELEM;
  const auto& unknown = own.unknown_keys;
  if (std::find(unknown.begin(), unknown.end(), key) != unknown.end()) return UCS_ERR_NO_ELEM;
  object->values[key] = value;
  return UCS_OK;
}

void fake_ucp::config_print(const ucp_config_t* config, std::FILE* to, const char* title,
                            ucs_config_print_flags_t flags) {
  api_entry in(*this, call::config_print);
  const auto* const object = in.find(network_.configurations, config);
  if (object == nullptr) return;
  if ((flags & UCS_CONFIG_PRINT_HEADER) != 0) std::fprintf(to, "#\n# %s\n#\n\n", title);
  if ((flags & UCS_CONFIG_PRINT_CONFIG) == 0) return;
  for (const auto& [key, value] : object->values) {
    if (defaults().count(key) != 0) std::fprintf(to, "UCX_%s=%s\n", key.c_str(), value.c_str());
  }
}

ucs_status_t fake_ucp::init(const ucp_params_t* params, const ucp_config_t* config,
                            ucp_context_h* context) {
  api_entry in(*this, call::init);
  if (in.refused()) return in.verdict().status;
  sim::config_object unchanged;
  const auto* chosen = config == nullptr ? &unchanged : in.find(network_.configurations, config);
  if (chosen == nullptr) return UCS_ERR_INVALID_PARAM;
  auto made = std::make_unique<sim::context_object>();
  made->process = &process_;
  if ((params->field_mask & UCP_PARAM_FIELD_FEATURES) != 0) made->features = params->features;
  for (const auto& resource : network_.link.resources) {
    const auto slash = resource.find('/');
    sim::lane lane{resource.substr(0, slash), resource.substr(slash + 1)};
    if (is_allowed(*chosen, lane, network_.devices != nullptr))
      made->lanes.push_back(std::move(lane));
  }
  if (made->lanes.empty()) return UCS_ERR_NO_DEVICE;
  made->knows_devices =
      network_.devices != nullptr &&
      std::any_of(made->lanes.begin(), made->lanes.end(),
                  [](const sim::lane& each) { return each.transport == "cuda_copy"; });
  const auto emulation = chosen->values.find("PROTO_EMULATION_ENABLE");
  const auto protocols = chosen->values.find("PROTO_ENABLE");
  const bool is_of_old = protocols != chosen->values.end() && protocols->second == "n";
  made->emulates = is_of_old || emulation == chosen->values.end() || emulation->second != "n";
  *context = reinterpret_cast<ucp_context_h>(network_.contexts.add(std::move(made)));
  return UCS_OK;
}

std::vector<detail::rdma_port> fake_ucp::rdma_ports() const { return network_.link.rdma_ports; }

bool fake_ucp::is_rdma_port_there(std::string_view name) const {
  const auto& ports = network_.link.rdma_ports;
  return std::any_of(ports.begin(), ports.end(),
                     [&](const auto& each) { return each.name == name; });
}

bool fake_ucp::may_lock(std::size_t bytes) const noexcept {
  return bytes <= network_.link.lockable;
}

void fake_ucp::cleanup(ucp_context_h context) {
  api_entry in(*this, call::cleanup);
  const auto* const object = in.find(network_.contexts, context);
  if (object == nullptr) return;
  if (object->workers != 0) in.violate("while a worker of the context lives");
  if (object->memories != 0) in.violate("while memory of the context is mapped");
  network_.contexts.remove(context);
}

ucs_status_t fake_ucp::context_query(ucp_context_h context, ucp_context_attr_t* attributes) {
  api_entry in(*this, call::context_query);
  const auto* const object = in.find(network_.contexts, context);
  if (object == nullptr) return UCS_ERR_INVALID_PARAM;
  if (in.refused()) return in.verdict().status;
  if ((attributes->field_mask & UCP_ATTR_FIELD_REQUEST_SIZE) != 0) attributes->request_size = 240;
  if ((attributes->field_mask & UCP_ATTR_FIELD_THREAD_MODE) != 0) {
    attributes->thread_mode = UCS_THREAD_MODE_MULTI;
  }
  if ((attributes->field_mask & UCP_ATTR_FIELD_MEMORY_TYPES) != 0) {
    attributes->memory_types = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    if (object->knows_devices) attributes->memory_types |= UCS_BIT(UCS_MEMORY_TYPE_CUDA);
  }
  if ((attributes->field_mask & UCP_ATTR_FIELD_NAME) != 0) {
    std::snprintf(attributes->name, sizeof(attributes->name), "%s", process_.name.c_str());
  }
  return UCS_OK;
}

void fake_ucp::context_print_info(ucp_context_h context, std::FILE* to) {
  api_entry in(*this, call::context_print_info);
  const auto* const object = in.find(network_.contexts, context);
  if (object == nullptr) return;
  std::fprintf(to, "#\n# UCP context\n#\n");
  std::vector<std::string> domains;
  for (const auto& lane : object->lanes) {
    if (std::find(domains.begin(), domains.end(), lane.transport) == domains.end()) {
      domains.push_back(lane.transport);
    }
  }
  for (std::size_t i = 0; i < domains.size(); ++i) {
    std::fprintf(to, "#     component %zu  :  %s\n", i, domains[i].c_str());
  }
  std::fprintf(to, "#\n");
  for (std::size_t i = 0; i < domains.size(); ++i) {
    std::fprintf(to, "#            md %zu  :  component %zu  %s \n", i, i, domains[i].c_str());
  }
  std::fprintf(to, "#\n");
  for (std::size_t i = 0; i < object->lanes.size(); ++i) {
    const auto& lane = object->lanes[i];
    const auto domain = std::find(domains.begin(), domains.end(), lane.transport);
    std::fprintf(to, "#      resource %zu  :  md %td  dev %zu  flags -- %s/%s\n", i,
                 domain - domains.begin(), i, lane.transport.c_str(), lane.device.c_str());
  }
  std::fprintf(to, "#\n");
}

}  // namespace ucx::test
