#include "ucp/device_choice.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/logger.hpp"
#include "os/device_name.hpp"
#include "os/rdma_port.hpp"
#include "ucp/configuration.hpp"
#include "ucp/context_description.hpp"
#include "ucp/rdma.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/transport_group.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// Returns whether one of UCX's network devices is what `asked` names.
bool is_there(const std::vector<std::string>& resources, std::string_view asked) {
  return std::any_of(resources.begin(), resources.end(), [&](const std::string& each) {
    return is_of_network(transport_of(each)) && names_device(asked, device_of(each));
  });
}

/// Returns whether a list names the port itself, and not by leaving others out.
bool names_port(std::string_view list, std::string_view port) {
  while (!list.empty() && !list.starts_with('^')) {
    const std::string_view name = take_word(list);
    if (name != "all" && names_device(name, port)) return true;
  }
  return false;
}

std::string joined(const std::vector<std::string>& names, std::string_view between) {
  std::string text;
  for (const std::string& each : names) text.append(text.empty() ? "" : between).append(each);
  return text;
}

}  // namespace

device_choice::device_choice(ucp_api& api, const context_options& options,
                             const device_limit& limit)
    : api_(api), options_(options), source_(who_names_devices()) {
  if (source_ != source::nobody && source_ != source::environment) return;
  // A limit comes before what the environment says, unless the environment is to win.
  if (source_ == source::environment && options.configuration_precedence == precedence::environment)
    return;
  why_limited_ = limit.why;
  if (limit.devices.empty()) return;
  if (source_ == source::environment) inherited_ = named_devices();
  source_ = source::limit;
  options_.devices = limit.devices;
  others_ = limit.others;
  is_without_rdma_ = limit.is_without_rdma;
  if (inherited_.empty()) return;
  std::vector<std::string> left = limit.devices;
  std::erase_if(left, [this](const auto& each) { return !allows_device(inherited_, each); });
  for (const device_limit::other_port& each : others_) {
    if (names_port(inherited_, each.name)) left.push_back(each.name);
  }
  narrowed_ = !left.empty() && left != limit.devices;
  if (narrowed_) options_.devices = std::move(left);
}

device_choice::source device_choice::who_names_devices() const {
  const bool inherits = std::getenv("UCX_NET_DEVICES") != nullptr;
  if (inherits && options_.configuration_precedence == precedence::environment)
    return source::environment;
  if (!options_.devices.empty()) return source::options;
  if (options_.configuration.count("NET_DEVICES") != 0) return source::configuration;
  return inherits ? source::environment : source::nobody;
}

/// Returns them as UCX's list.
std::string device_choice::named_devices() const {
  switch (source_) {
    case source::nobody:
      break;
    case source::options:
    case source::limit:
      return joined(options_.devices, ",");
    case source::configuration:
      return without_blanks(options_.configuration.at("NET_DEVICES"));
    case source::environment:
      return without_blanks(std::getenv("UCX_NET_DEVICES"));
  }
  return "all";
}

std::string device_choice::why_limited() const {
  if (inherited_.empty()) return why_limited_;
  if (narrowed_) return why_limited_ + ", and UCX_NET_DEVICES=" + inherited_;
  return why_limited_ + ", which counts before UCX_NET_DEVICES=" + inherited_;
}

bool device_choice::transports_are_named() const {
  return !options_.transports.empty() || options_.configuration.count("TLS") != 0 ||
         std::getenv("UCX_TLS") != nullptr;
}

result<void> device_choice::leave_out_rdma(const std::vector<std::string>& resources) {
  const auto is_new = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) == names.end();
  };
  bool is_named = options_.require_rdma;
  for (const std::string& each : resources) {
    const std::string device(device_of(each));
    if (is_rdma(each)) {
      left_out_.push_back(each);
      is_named = is_named || (source_ == source::options && names_port(named_devices(), device));
    } else if (is_of_network(transport_of(each)) && is_new(rest_, device) &&
               rest_.size() < most_devices) {
      rest_.push_back(device);
    }
  }
  if (!is_named && !rest_.empty()) return {};
  std::vector<std::string> devices;
  for (const std::string& each : left_out_) {
    if (is_new(devices, device_of(each))) devices.emplace_back(device_of(each));
  }
  return failure{errc::no_lockable_memory, "making a context with the RDMA hardware " +
                                               joined(devices, ", ") + ": " +
                                               words_of_lack_to_lock()};
}

result<void> device_choice::check(const std::vector<std::string>& resources,
                                  const std::vector<withheld_transport>& withheld) {
  if (auto checked = check_names(resources); !checked) return checked;
  look_at_environment();
  look_at_names(resources);
  look_at_left_out();
  look_at_ports(resources);
  look_at_transports(resources, withheld);
  return {};
}

result<void> device_choice::check_names(const std::vector<std::string>& resources) const {
  if (source_ != source::options && source_ != source::limit) return {};
  const std::vector<std::string>& names = options_.devices;
  const auto there = [&](const std::string& each) { return is_there(resources, each); };
  const auto missing = std::find_if_not(names.begin(), names.end(), there);
  if (missing == names.end()) return {};
  if (source_ == source::options) {
    return failure{errc::bad_configuration, "making a context: there is no device \"" + *missing +
                                                "\" with the transports that are allowed" +
                                                present()};
  }
  // One of a limit is enough.
  if (std::any_of(names.begin(), names.end(), there)) return {};
  return failure{errc::bad_configuration,
                 "making a context for the devices " + joined(names, ", ") + " (" + why_limited() +
                     "): UCX has none of them with the transports that are allowed" + present()};
}

/// A user who names devices in the environment expects that UCX takes these, and no others.
void device_choice::look_at_environment() {
  if (inherited_.empty()) return;
  const std::vector<std::string>& limit = options_.devices;
  bool is_same = std::all_of(limit.begin(), limit.end(), [&](const std::string& each) {
    return allows_device(inherited_, each);
  });
  std::string_view rest = inherited_;
  while (is_same && !rest.empty() && !inherited_.starts_with('^')) {
    const std::string_view name = take_word(rest);
    is_same = name.empty() || name == "all" ||
              std::any_of(limit.begin(), limit.end(),
                          [&](const auto& each) { return names_device(name, each); });
  }
  if (is_same) return;
  unused_.push_back(
      {"UCX_NET_DEVICES=" + inherited_ + ": limited to " + joined(limit, " ") + ": " + why_limited_,
       false});
}

/// UCX says nothing of a name that comes to nothing, as long as anything else is left.
void device_choice::look_at_names(const std::vector<std::string>& resources) {
  if (source_ == source::nobody || source_ == source::options) return;
  const std::string list = named_devices();
  const std::vector<rdma_port> ports = api_.rdma_ports();
  std::string_view rest = list;
  if (rest.starts_with('^')) return;
  while (!rest.empty()) {
    const std::string_view name = take_word(rest);
    const bool is_port = std::any_of(ports.begin(), ports.end(), [&](const rdma_port& each) {
      return names_device(name, each.name);
    });
    if (name.empty() || name == "all" || is_port || is_there(resources, name)) continue;
    unused_.push_back(
        {std::string(name) + ": UCX has no transport for it among those that are allowed",
         transports_are_named()});
  }
}

void device_choice::look_at_left_out() {
  std::string_view before;
  for (const std::string& each : left_out_) {
    const std::string_view device = device_of(each);
    if (device == std::exchange(before, device)) continue;
    unused_.push_back({std::string(device) + ": " + words_of_lack_to_lock(), false});
  }
}

/// Returns why a limit leaves out the port; empty where that is for no network's sake.
std::string device_choice::why_of_other_network(const std::string& port) const {
  const auto found = std::find_if(others_.begin(), others_.end(),
                                  [&](const auto& each) { return each.name == port; });
  if (found == others_.end()) return {};
  return found->why + "; UCX_NET_DEVICES or the options may name it";
}

/// Returns why a limit leaves out a port that has nothing else against it.
std::string device_choice::why_beyond_the_limit() const {
  if (!is_without_rdma_ && options_.devices.size() >= most_devices) {
    return "UCX takes " + std::to_string(most_devices) + " devices";
  }
  return "the context is limited to " + joined(options_.devices, " ") + ": " + why_limited_;
}

/// Of the machine's RDMA devices, those that nothing forbids.
void device_choice::look_at_ports(const std::vector<std::string>& resources) {
  const std::string list = named_devices();
  const bool by_address = source_ == source::limit;
  const bool on_loopback = by_address && options_.devices == std::vector<std::string>{"lo"};
  const std::vector<rdma_port> ports = api_.rdma_ports();
  const bool any_used = std::any_of(ports.begin(), ports.end(), [&](const rdma_port& each) {
    return is_there(resources, each.name);
  });
  for (const rdma_port& each : ports) {
    if (is_there(resources, each.name) || is_there(left_out_, each.name)) continue;
    const bool wanted = allows_device(list, each.name);
    std::string why;
    if (on_loopback || (!wanted && !by_address)) continue;
    if (narrowed_ && !allows_device(inherited_, each.name)) continue;
    const std::string elsewhere = wanted ? std::string() : why_of_other_network(each.name);
    bool expected = !each.is_usable() || transports_are_named();
    if (!each.hindrance.empty()) {
      why = each.hindrance;
    } else if (!each.is_usable()) {
      why = "its port is " + each.state;
    } else if (!elsewhere.empty()) {
      why = elsewhere;
      expected = expected || any_used;
    } else if (!wanted) {
      why = why_beyond_the_limit();
      expected = expected || is_without_rdma_;
    } else if (transports_are_named()) {
      why = "UCX has no transport for it among those that are allowed";
    } else {
      why = "UCX has no transport for it: it was built without, or lacks a part of it";
    }
    unused_.push_back({each.name + ": " + why, expected});
  }
}

void device_choice::look_at_transports(const std::vector<std::string>& resources,
                                       const std::vector<withheld_transport>& withheld) {
  for (const withheld_transport& each : withheld) {
    unused_.push_back({"transport " + each.name + ": " + each.why, each.expected});
  }
  if (options_.configuration_precedence == precedence::environment &&
      std::getenv("UCX_TLS") != nullptr)
    return;
  for (const std::string& name : options_.transports) {
    const auto is_of_it = [&](const auto& each) { return stands_for(name, transport_of(each)); };
    const bool found = std::any_of(resources.begin(), resources.end(), is_of_it) ||
                       std::any_of(left_out_.begin(), left_out_.end(), is_of_it);
    const bool told = std::any_of(withheld.begin(), withheld.end(),
                                  [&](const auto& each) { return each.name == name; });
    if (!found && !told)
      unused_.push_back({"transport " + name + ": UCX has no device for it", false});
  }
}

std::vector<std::string> device_choice::unused() const {
  std::vector<std::string> all;
  for (const forgone& each : unused_) all.push_back(each.what);
  return all;
}

void device_choice::log(logger& to, const std::vector<std::string>& resources) const {
  if (to.writes(log_level::info)) {
    std::string line = "context made: " + joined(resources, " ");
    if (source_ == source::limit) {
      line += ';' + limited().substr(1);
    } else if (!why_limited_.empty()) {
      line += "; not limited to any device: " + why_limited_;
    }
    to.write(log_level::info, line);
  }
  for (const forgone& each : unused_) {
    const log_level level = each.expected ? log_level::info : log_level::warning;
    if (to.writes(level)) to.write(level, "not used: " + each.what);
  }
}

std::string device_choice::limited() const {
  if (source_ != source::limit) return {};
  return ", limited to " + joined(options_.devices, " ") + ": " + why_limited();
}

std::string device_choice::present() const {
  context_options all = options_;
  all.devices.clear();
  all.configuration["NET_DEVICES"] = "all";
  all.configuration_precedence = precedence::options;
  const auto config = configuration::make(api_, all);
  if (!config) return {};
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_RMA | UCP_FEATURE_AM;
  ucp_context_h made = nullptr;
  if (api_.init(&params, config->handle(), &made) != UCS_OK) return {};
  std::vector<std::string> devices;
  for (const std::string& each : resources_of(api_, made)) {
    const std::string device(device_of(each));
    const bool known = std::find(devices.begin(), devices.end(), device) != devices.end();
    if (is_of_network(transport_of(each)) && !known) devices.push_back(device);
  }
  api_.cleanup(made);
  std::string text =
      devices.empty() ? "; there is none at all" : "; there are " + joined(devices, ", ");
  for (const rdma_port& each : api_.rdma_ports()) {
    if (!each.hindrance.empty()) text += "; " + each.name + ": " + each.hindrance;
  }
  return text;
}

}  // namespace ucx::detail
