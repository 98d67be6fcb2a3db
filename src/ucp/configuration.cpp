#include "ucp/configuration.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "os/device_name.hpp"
#include "ucp/asked_settings.hpp"
#include "ucp/configuration_key.hpp"
#include "ucp/configuration_listing.hpp"
#include "ucp/configuration_value.hpp"
#include "ucp/key_suggestion.hpp"
#include "ucp/status.hpp"
#include "ucx/version.hpp"

namespace ucx::detail {
namespace {

/// How the options' own list of transports is called in an error text.
constexpr const char* key_of_names = "transports";

std::string join(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list.append(list.empty() ? "" : ",").append(name);
  return list;
}

/// The work of making one configuration.
class builder {
 public:
  builder(ucp_api& api, ucp_config_t* config) : api_(api), config_(config) {
    api.get_version(&version_.major, &version_.minor, &version_.patch);
  }

  result<void> take(const context_options& options);
  void choose_transports();
  result<void> choose_devices();
  void replace_devices(const std::vector<std::string>& by);
  result<void> choose_defaults(expected_rdma hardware);
  std::size_t segment_size() const noexcept { return segment_size_; }
  bool counts_on_rdma() const noexcept { return counts_on_rdma_; }
  result<void> apply();
  std::vector<std::pair<std::string, std::string>> values() const;
  const std::vector<withheld_transport>& withheld() const { return allowed_->withheld(); }

 private:
  result<void> take_names(const context_options& options);
  result<void> take_key(const std::string& key, const std::string& value);
  result<void> check_transports(const std::string& where, std::string_view names) const;
  result<void> add(configuration_setting wanted);
  result<void> apply_one(const configuration_setting& wanted, bool ours);
  result<void> apply_once(const configuration_setting& ours);
  result<void> set_log_level();
  std::string ucx() const { return "UCX " + to_string(version_); }

  ucp_api& api_;
  ucp_config_t* const config_;
  version_number version_;
  bool environment_wins_ = false;
  std::map<std::string, value_rule, std::less<>> own_keys_;  // UCX's, where anybody asked for one
  asked_settings asked_;
  std::optional<allowed_transports> allowed_;
  std::vector<configuration_setting> defaults_;
  std::size_t segment_size_ = 0;
  bool counts_on_rdma_ = false;
};

result<void> builder::take(const context_options& options) {
  environment_wins_ = options.configuration_precedence == precedence::environment;
  if (auto taken = take_names(options); !taken) return taken;
  if (options.configuration.empty()) return {};
  for (const listed_key& each : list_configuration(api_, config_, true)) {
    own_keys_.emplace(each.key, value_rule::of_syntax(each.syntax));
  }
  for (const auto& [key, value] : options.configuration) {
    if (auto taken = take_key(key, value); !taken) return taken;
  }
  return {};
}

/// Says the list of devices so that this UCX finds what it names.
result<void> builder::choose_devices() {
  configuration_setting* const set = asked_.find("NET_DEVICES");
  const std::string asked(asked_.in_force("NET_DEVICES", "UCX_NET_DEVICES"));
  std::string list = without_blanks(asked);
  if (version_ < version_number{1, 22, 0}) {
    std::vector<std::string> ports;
    for (rdma_port& each : api_.rdma_ports()) ports.push_back(std::move(each.name));
    list = spelled_out(list, ports);
  }
  const std::size_t named = count_devices(list);
  if (named > most_devices) {
    return refused_configuration("the list of devices (NET_DEVICES) names " +
                                 std::to_string(named) + ", and UCX takes no more than " +
                                 std::to_string(most_devices));
  }
  if (list == asked) return {};
  if (set != nullptr) {
    set->value = list;
  } else {
    defaults_.push_back({"NET_DEVICES", list, {"NET_DEVICES"}});
  }
  return {};
}

void builder::replace_devices(const std::vector<std::string>& by) {
  if (configuration_setting* const set = asked_.find("NET_DEVICES")) {
    set->value = join(by);
  } else {
    asked_.add({"devices", join(by), {"NET_DEVICES"}});
  }
}

result<void> builder::take_names(const context_options& options) {
  for (const std::string& name : options.transports) {
    if (!is_transport_name(name, version_)) {
      if (auto checked = check_transports("transports", name); !checked) return checked;
    }
    if (name.find_first_of(",:^\\") != std::string::npos || name.empty()) {
      return refused_configuration("\"" + name + "\" is not the name of one transport");
    }
  }
  for (const std::string& name : options.devices) {
    const bool plain = std::all_of(name.begin(), name.end(),
                                   [](char c) { return c > ' ' && c != ',' && c != '\x7f'; });
    if (name.empty() || name.front() == '^' || !plain) {
      return refused_configuration("\"" + name + "\" is not the name of a device");
    }
  }
  if (!options.transports.empty()) {
    auto added = add({key_of_names, join(options.transports), {"TLS"}});
    if (!added) return added;
  }
  if (options.devices.empty()) return {};
  return add({"devices", join(options.devices), {"NET_DEVICES"}});
}

result<void> builder::check_transports(const std::string& where, std::string_view names) const {
  if (names.starts_with('^')) names.remove_prefix(1);
  while (!names.empty()) {
    std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    if (name.starts_with('\\')) name.remove_prefix(1);
    if (name.ends_with(":aux")) name.remove_suffix(4);
    if (is_transport_name(name, version_)) continue;
    return refused_configuration(where + ": " + ucx() + " has no transport \"" + std::string(name) +
                                 "\"; it may have " + transport_names(version_));
  }
  return {};
}

result<void> builder::take_key(const std::string& key, const std::string& value) {
  const auto own = own_keys_.find(key);
  std::vector<std::string> spellings{key};
  value_rule rule(value_rule::form::anything);
  if (own != own_keys_.end()) {
    rule = own->second;
  } else {
    configuration_key found = find_configuration_key(key, version_);
    rule = found.rule;
    spellings = std::move(found.spellings);
    using standing = configuration_key::standing;
    if (found.where == standing::unknown) {
      std::vector<std::string> known = configuration_key_names();
      for (const auto& each : own_keys_) known.push_back(each.first);
      return refused_configuration("unknown UCX configuration key \"" + key + '"' +
                                   suggestion(key, known));
    }
    if (found.where == standing::later) {
      return refused_configuration("configuration key " + key + ": newer versions have it, " +
                                   ucx() + " does not");
    }
    if (found.where == standing::environment_only) {
      return refused_configuration("configuration key " + key +
                                   ": UCX takes it only from the environment, as UCX_" + key +
                                   ", when the process starts");
    }
    for (const std::string& spelling : spellings) {
      if (own_keys_.contains(spelling)) {
        return refused_configuration("configuration key " + key + ": " + ucx() +
                                     " can set it only in the " + "environment, as UCX_" + key);
      }
    }
  }
  if (!rule.accepts(value)) {
    return refused_configuration("bad value in the UCX configuration " + key + "=" + value +
                                 "; expected " + rule.description());
  }
  if (key == "TLS") {
    if (auto checked = check_transports("configuration key TLS", value); !checked) return checked;
  }
  return add({key, value, std::move(spellings)});
}

result<void> builder::add(configuration_setting wanted) {
  for (const std::string& spelling : wanted.spellings) {
    const configuration_setting* const before = asked_.find(spelling);
    if (before == nullptr) continue;
    return refused_configuration("\"" + before->key + "\" and \"" + wanted.key +
                                 "\" set the same thing; leave one out");
  }
  const auto is_set = [](const std::string& spelling) {
    return inherited(("UCX_" + spelling).c_str()) != nullptr;
  };
  if (environment_wins_ && std::any_of(wanted.spellings.begin(), wanted.spellings.end(), is_set)) {
    return {};
  }
  asked_.add(std::move(wanted));
  return {};
}

/// Leaves out what would do harm, which may change what options or environment say.
void builder::choose_transports() {
  configuration_setting* const set = asked_.find("TLS");
  const char* const outside = inherited("UCX_TLS");
  if (set == nullptr && outside == nullptr) {
    allowed_.emplace(version_);
    defaults_.push_back({"TLS", allowed_->value(), {"TLS"}});
    return;
  }
  using asked_by = allowed_transports::asked_by;
  const bool by_names = set != nullptr && set->key == key_of_names;
  const std::string asked = set != nullptr ? set->value : outside;
  allowed_.emplace(asked, by_names ? asked_by::context_options : asked_by::list, version_);
  if (set != nullptr) {
    set->value = allowed_->value();
  } else if (allowed_->value() != asked) {
    defaults_.push_back({"TLS", allowed_->value(), {"TLS"}});
  }
}

result<void> builder::choose_defaults(expected_rdma hardware) {
  default_settings chosen(api_, version_, asked_, *allowed_, hardware);
  if (const auto made = chosen.choose(); !made) return made.why();
  defaults_.insert(defaults_.end(), chosen.all().begin(), chosen.all().end());
  segment_size_ = chosen.segment_size();
  counts_on_rdma_ = chosen.counts_on_rdma();
  return {};
}

result<void> builder::apply() {
  if (auto set = set_log_level(); !set) return set;
  for (const configuration_setting& each : defaults_) {
    if (auto applied = each.of_process ? apply_once(each) : apply_one(each, true); !applied) {
      return applied;
    }
  }
  for (const configuration_setting& each : asked_.all()) {
    if (auto applied = apply_one(each, false); !applied) return applied;
  }
  return {};
}

result<void> builder::apply_one(const configuration_setting& wanted, bool ours) {
  ucs_status_t refusal = UCS_OK;
  bool applied = false;
  // One transport that has the key is enough.
  for (const std::string& spelling : wanted.spellings) {
    const ucs_status_t status = api_.config_modify(config_, spelling.c_str(), wanted.value.c_str());
    if (status == UCS_OK) {
      applied = true;
    } else {
      refusal = status;
    }
  }
  if (applied) return {};
  const bool unknown = refusal == UCS_ERR_INVALID_PARAM || refusal == UCS_ERR_NO_ELEM;
  // The library's default for a transport that this UCX was built without is no loss.
  if (ours && unknown) return {};
  failure why = refused_configuration(
      ucx() + " refuses the configuration " + wanted.key + "=" + wanted.value +
          " (UCX: " + words(refusal) + "); its transport may not be installed",
      unknown ? make_error_code(errc::bad_configuration) : make_error(refusal));
  why.ucx_status = refusal;
  return why;
}

/// UCX has one value for the process, which its threads read from the first worker on. So the first
/// context that wants it writes it, before that goes on, and no other.
result<void> builder::apply_once(const configuration_setting& ours) {
  static std::mutex mutex;
  static const ucp_api* decided = nullptr;
  const std::lock_guard guard(mutex);
  if (decided == &api_) return {};
  auto applied = apply_one(ours, true);
  if (applied) decided = &api_;
  return applied;
}

result<void> builder::set_log_level() {
  // Process-wide in UCX, so the first context decides; another one's options may change it, but its
  // silence does not.
  static std::atomic<const ucp_api*> decided{nullptr};
  const bool first = decided.exchange(&api_) != &api_;
  const bool told = asked_.find("LOG_LEVEL") != nullptr || inherited("UCX_LOG_LEVEL") != nullptr;
  if (!first || told) return {};
  return apply_one({"LOG_LEVEL", "fatal", {"LOG_LEVEL"}}, true);
}

std::vector<std::pair<std::string, std::string>> builder::values() const {
  std::vector<std::pair<std::string, std::string>> values;
  const auto has = [&values](const std::string& key) {
    return std::any_of(values.begin(), values.end(),
                       [&key](const auto& each) { return each.first == key; });
  };
  for (listed_key& each : list_configuration(api_, config_, false)) {
    values.emplace_back(std::move(each.key), std::move(each.value));
  }
  for (const auto* const settings : {&defaults_, &asked_.all()}) {
    for (const configuration_setting& each : *settings) {
      for (const std::string& spelling : each.spellings) {
        if (!has(spelling)) values.emplace_back(spelling, each.value);
      }
    }
  }
  return values;
}

}  // namespace

result<configuration> configuration::make(ucp_api& api, const context_options& options,
                                          const std::vector<std::string>& devices,
                                          expected_rdma hardware) {
  ucp_config_t* read = nullptr;
  const ucs_status_t status = api.config_read(nullptr, nullptr, &read);
  if (status != UCS_OK) {
    return failure{
        status == UCS_ERR_INVALID_PARAM ? make_error_code(errc::bad_configuration)
                                        : make_error(status),
        "making a context: UCX can not read its configuration from the environment, UCX_* (UCX: " +
            words(status) + ")",
        status};
  }
  configuration made(api, read);
  builder work(api, read);
  if (const auto taken = work.take(options); !taken) return taken.why();
  work.choose_transports();
  if (!devices.empty()) {
    work.replace_devices(devices);
  } else if (const auto chosen = work.choose_devices(); !chosen) {
    return chosen.why();
  }
  if (const auto chosen = work.choose_defaults(hardware); !chosen) return chosen.why();
  made.segment_size_ = work.segment_size();
  made.counts_on_rdma_ = work.counts_on_rdma();
  if (const auto applied = work.apply(); !applied) return applied.why();
  made.values_ = work.values();
  made.withheld_ = work.withheld();
  return made;
}

}  // namespace ucx::detail
