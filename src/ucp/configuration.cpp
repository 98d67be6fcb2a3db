#include "ucp/configuration.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "os/device_name.hpp"
#include "ucp/configuration_key.hpp"
#include "ucp/configuration_listing.hpp"
#include "ucp/configuration_value.hpp"
#include "ucp/key_suggestion.hpp"
#include "ucp/resource_error.hpp"
#include "ucp/status.hpp"
#include "ucp/transport_list.hpp"
#include "ucx/version.hpp"

namespace ucx::detail {
namespace {

// A payload of 1 MiB, our header and UCX's in one segment.
constexpr std::uint64_t default_segment = (std::uint64_t{1} << 20U) + 4096;
// Below, UCX makes no worker; above, none from 1.14 on, whose buffers come in chunks of 128 MiB.
constexpr std::uint64_t smallest_segment = 1024;
constexpr std::uint64_t largest_segment = std::uint64_t{32} << 20U;
// UCX's addresses of version 2 have 16 bits for it, of 64 bytes each, and it is 0 where it is
// longer.
constexpr std::uint64_t largest_told_segment = 0xffffU * std::uint64_t{64};
// More than one address of a peer's has ports.
constexpr unsigned most_sockets = 65'536;
constexpr const char* key_of_sockets = "ASYNC_MAX_EVENTS";

const char* environment(const char* name) noexcept { return std::getenv(name); }

struct setting {
  std::string key;  // as the user says it
  std::string value;
  std::vector<std::string> spellings;  // as this UCX says it
};

/// The work of making one configuration.
class builder {
 public:
  builder(ucp_api& api, ucp_config_t* config) : api_(api), config_(config) {
    api.get_version(&version_.major, &version_.minor, &version_.patch);
  }

  result<void> take(const context_options& options);
  void choose_transports();
  result<void> check_devices() const;
  result<std::size_t> choose_segments();
  void choose_defaults();
  void connect_without_blocking();
  void let_in_many();
  void tell_segments(std::size_t sending);
  void choose_shared_memory();
  result<void> apply();
  std::vector<std::pair<std::string, std::string>> values() const;

 private:
  result<void> take_names(const context_options& options);
  result<void> take_key(const std::string& key, const std::string& value);
  result<void> check_transports(const std::string& where, std::string_view names) const;
  result<void> add(setting wanted);
  result<void> apply_one(const setting& wanted, bool ours);
  result<void> apply_once(const setting& ours);
  result<void> set_log_level();
  const setting* find(std::string_view spelling) const noexcept;
  bool allows(std::string_view transport) const { return transports_.allows(transport); }
  std::string_view in_force(std::string_view spelling, const char* variable) const noexcept;
  bool may_use_rdma() const;
  result<std::optional<std::uint64_t>> segment(const char* key, const char* variable) const;
  void set_by_default(const char* key, const std::string& value);
  std::string ucx() const { return "UCX " + to_string(version_); }
  static failure refused(const std::string& text, std::error_code why = errc::bad_configuration) {
    return {why, "making a context: " + text};
  }

  ucp_api& api_;
  ucp_config_t* const config_;
  version_number version_;
  bool environment_wins_ = false;
  std::map<std::string, value_rule, std::less<>> own_keys_;  // UCX's, where anybody asked for one
  std::vector<setting> wanted_;
  std::vector<setting> defaults_;
  transport_list transports_{"all"};  // that are allowed
};

result<void> builder::take(const context_options& options) {
  environment_wins_ = options.wins == precedence::environment;
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

result<void> builder::check_devices() const {
  const std::size_t named = count_devices(in_force("NET_DEVICES", "UCX_NET_DEVICES"));
  if (named <= most_devices) return {};
  return refused("the list of devices (NET_DEVICES) names " + std::to_string(named) +
                 ", and UCX takes no more than " + std::to_string(most_devices));
}

result<void> builder::take_names(const context_options& options) {
  const auto join = [](const std::vector<std::string>& names) {
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ",") + name;
    return list;
  };
  for (const std::string& name : options.transports) {
    if (!is_transport_name(name, version_)) {
      if (auto checked = check_transports("transports", name); !checked) return checked;
    }
    if (name.find_first_of(",:^\\") != std::string::npos || name.empty()) {
      return refused("\"" + name + "\" is not the name of one transport");
    }
  }
  for (const std::string& name : options.devices) {
    const bool plain = std::all_of(name.begin(), name.end(),
                                   [](char c) { return c > ' ' && c != ',' && c != '\x7f'; });
    if (name.empty() || name.front() == '^' || !plain) {
      return refused("\"" + name + "\" is not the name of a device");
    }
  }
  std::vector<std::string> transports = options.transports;
  // There CMA ends a reader whose owner has died (measured with 1.18.1), and is taken even where
  // shared memory would do. It is never all that a list names: nothing else opens connections.
  const bool deadly = version_ >= version_number{1, 14, 0} && version_ < version_number{1, 22, 0};
  if (deadly && transports.size() > 1) std::erase(transports, "cma");
  if (!transports.empty()) {
    if (auto added = add({"transports", join(transports), {"TLS"}}); !added) return added;
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
    return refused(where + ": " + ucx() + " has no transport \"" + std::string(name) +
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
      return refused("unknown UCX configuration key \"" + key + '"' + suggestion(key, known));
    }
    if (found.where == standing::later) {
      return refused("configuration key " + key + ": newer versions have it, " + ucx() +
                     " does not");
    }
    if (found.where == standing::environment_only) {
      return refused("configuration key " + key +
                     ": UCX takes it only from the environment, as UCX_" + key +
                     ", when the process starts");
    }
    for (const std::string& spelling : spellings) {
      if (own_keys_.contains(spelling)) {
        return refused("configuration key " + key + ": " + ucx() + " can set it only in the " +
                       "environment, as UCX_" + key);
      }
    }
  }
  if (!rule.accepts(value)) {
    return refused("bad value in the UCX configuration " + key + "=" + value + "; expected " +
                   rule.description());
  }
  if (key == "TLS") {
    if (auto checked = check_transports("configuration key TLS", value); !checked) return checked;
  }
  return add({key, value, std::move(spellings)});
}

result<void> builder::add(setting wanted) {
  for (const std::string& spelling : wanted.spellings) {
    const setting* const before = find(spelling);
    if (before == nullptr) continue;
    return refused("\"" + before->key + "\" and \"" + wanted.key +
                   "\" set the same thing; leave one out");
  }
  const auto is_set = [](const std::string& spelling) {
    return environment(("UCX_" + spelling).c_str()) != nullptr;
  };
  if (environment_wins_ && std::any_of(wanted.spellings.begin(), wanted.spellings.end(), is_set)) {
    return {};
  }
  wanted_.push_back(std::move(wanted));
  return {};
}

const setting* builder::find(std::string_view spelling) const noexcept {
  const auto found = std::find_if(wanted_.begin(), wanted_.end(), [&](const setting& each) {
    return std::find(each.spellings.begin(), each.spellings.end(), spelling) !=
           each.spellings.end();
  });
  return found == wanted_.end() ? nullptr : &*found;
}

/// Leaves out the transports whose memory is open to others, unless options or environment name
/// them.
void builder::choose_transports() {
  const auto set = std::find_if(wanted_.begin(), wanted_.end(), [](const setting& each) {
    return each.spellings.front() == "TLS";
  });
  const char* const inherited = environment("UCX_TLS");
  // UCX writes to what it makes in `/dev/shm`, and makes no worker where that may not be so long.
  const char* const usual = longest_file() < ample_shared_memory ? "^posix" : "all";
  const std::string asked = set != wanted_.end()   ? set->value
                            : inherited != nullptr ? inherited
                                                   : usual;
  const std::string kept = transport_list(asked).kept_to_the_user(version_);
  transports_ = transport_list(kept);
  if (kept == asked) return;
  if (set != wanted_.end()) {
    set->value = kept;
  } else {
    set_by_default("TLS", kept);
  }
}

/// Returns what the options, or else the environment, say; "all" where both say nothing.
std::string_view builder::in_force(std::string_view spelling, const char* variable) const noexcept {
  const setting* const set = find(spelling);
  if (set != nullptr) return set->value;
  const char* const inherited = environment(variable);
  return inherited != nullptr ? inherited : "all";
}

/// Returns whether the machine has RDMA hardware that options and environment let UCX use.
bool builder::may_use_rdma() const {
  static constexpr std::array<std::string_view, 5> verbs{"rc_verbs", "rc_mlx5", "dc_mlx5",
                                                         "ud_verbs", "ud_mlx5"};
  if (std::none_of(verbs.begin(), verbs.end(), [this](auto each) { return allows(each); })) {
    return false;
  }
  const std::string_view devices = in_force("NET_DEVICES", "UCX_NET_DEVICES");
  const std::vector<rdma_port> ports = api_.rdma_ports();
  return std::any_of(ports.begin(), ports.end(), [&](const rdma_port& each) {
    return each.is_usable() && allows_device(devices, each.name);
  });
}

/// Returns what the options or the environment say about a segment.
result<std::optional<std::uint64_t>> builder::segment(const char* key, const char* variable) const {
  const configuration_key known = find_configuration_key(key, version_);
  const setting* const set = find(known.spellings.front());
  const char* const inherited = environment(variable);
  if (set == nullptr && inherited == nullptr) return std::optional<std::uint64_t>();
  const std::string name = set != nullptr ? set->key : variable;
  const std::string value = set != nullptr ? set->value : inherited;
  const std::optional<std::uint64_t> size = read_size(value);
  if (!size || *size < smallest_segment || *size > largest_segment) {
    return refused("bad value in the UCX configuration " + name + "=" + value +
                   "; expected a number of bytes from 1k to 32m");
  }
  return size;
}

result<std::size_t> builder::choose_segments() {
  if (!allows("tcp")) return default_segment;
  const auto sent = segment("TCP_TX_SEG_SIZE", "UCX_TCP_TX_SEG_SIZE");
  if (!sent) return sent.why();
  const auto received = segment("TCP_RX_SEG_SIZE", "UCX_TCP_RX_SEG_SIZE");
  if (!received) return received.why();
  // UCX makes no worker that could send more in one piece than it can receive.
  if (*sent && *received && **sent > **received) {
    return refused("TCP_TX_SEG_SIZE (" + std::to_string(**sent) +
                   " bytes) is above TCP_RX_SEG_SIZE (" + std::to_string(**received) + " bytes)");
  }
  const std::uint64_t sending =
      sent->value_or(std::min(default_segment, received->value_or(default_segment)));
  if (!*sent) set_by_default("TCP_TX_SEG_SIZE", std::to_string(sending));
  if (!*received) set_by_default("TCP_RX_SEG_SIZE", std::to_string(sending));
  return sending;
}

/// Else UCX connects by a call that blocks who drives progress, and where the peer resets the
/// connection before UCX's first word, frees a lane that it goes on using (uct_tcp_ep_connect
/// counts it as its own only afterwards; 1.22).
void builder::connect_without_blocking() {
  constexpr const char* key = "TCP_CONN_NB";
  const std::string spelling = find_configuration_key(key, version_).spellings.front();
  const bool set = find(spelling) != nullptr || environment("UCX_TCP_CONN_NB") != nullptr ||
                   environment("UCX_CONN_NB") != nullptr;
  if (allows("tcp") && !set) set_by_default(key, "y");
}

/// UCX 1.13 has no more than 1024 sockets to a worker that its thread looks after, of which each
/// that was let in is one. It frees the endpoint of one more, and keeps it in the list of those
/// that it ends with the worker (uct_tcp_listener_conn_req_handler). The number is the process's; a
/// worker that is made takes eight bytes for each.
void builder::let_in_many() {
  if (version_ >= version_number{1, 14} || !allows("tcp")) return;
  if (environment("UCX_ASYNC_MAX_EVENTS") != nullptr) return;
  set_by_default(key_of_sockets, std::to_string(most_sockets));
}

/// Addresses of version 1, UCX's default, say nothing of segments: a peer that has longer ones
/// sends them, and UCX writes what it receives behind its buffer (uct_tcp_ep_progress_am_rx, 1.22),
/// or ends the process by an assertion (1.13.1). Where RDMA is there, its lanes are chosen by what
/// version 1 says, which is more exact.
void builder::tell_segments(std::size_t sending) {
  constexpr const char* key = "ADDRESS_VERSION";
  if (!allows("tcp") || may_use_rdma() || sending > largest_told_segment) return;
  if (find(key) == nullptr && environment("UCX_ADDRESS_VERSION") == nullptr) {
    set_by_default(key, "v2");
  }
}

void builder::choose_defaults() {
  // Without it, a restarted server finds its port busy.
  const bool set = find("CM_REUSEADDR") != nullptr || find("TCP_CM_REUSEADDR") != nullptr ||
                   find("RDMA_CM_REUSEADDR") != nullptr;
  if (!set && environment("UCX_CM_REUSEADDR") == nullptr &&
      environment("UCX_TCP_CM_REUSEADDR") == nullptr &&
      environment("UCX_RDMA_CM_REUSEADDR") == nullptr) {
    set_by_default("CM_REUSEADDR", "y");
  }
  // A zero-copy send that has begun ends the process when its peer is gone: uct_tcp_ep_sendv
  // completes it twice (1.13.1 to 1.22), and an assertion of UCX's notices. Where RDMA is there,
  // its zero-copy transfers are worth more.
  if (allows("tcp") && !may_use_rdma() && find("ZCOPY_THRESH") == nullptr &&
      environment("UCX_ZCOPY_THRESH") == nullptr) {
    set_by_default("ZCOPY_THRESH", "inf");
  }
  // By RDMA's connection manager, UCX's first choice, nobody answers where the peer has no RDMA,
  // and UCX tries TCP's only when that has failed, which takes longer than anybody waits. Which
  // lanes a connection has is another matter: by TCP's, too, they are RDMA's where both sides have
  // it.
  constexpr const char* managers = "SOCKADDR_TLS_PRIORITY";
  if (allows("tcp") && may_use_rdma() && find(managers) == nullptr &&
      environment("UCX_SOCKADDR_TLS_PRIORITY") == nullptr) {
    set_by_default(managers, "tcp,rdmacm");
  }
  connect_without_blocking();
  let_in_many();
  choose_shared_memory();
}

/// Of what UCX does where `/dev/shm` is small: it looks for room when a context is made, takes it
/// when a worker is made, and where another process took it meanwhile, it falls back on private
/// memory and reads through a null pointer (uct_mm_iface_recv_desc_init, 1.14 to 1.22).
void builder::choose_shared_memory() {
  if (version_ < version_number{1, 14}) return;
  // Where the choice is UCX's, posix is left out in time.
  const bool free_choice = find("TLS") == nullptr && environment("UCX_TLS") == nullptr;
  if (free_choice && environment("UCX_POSIX_SHM_MIN_SIZE") == nullptr) {
    set_by_default("POSIX_SHM_MIN_SIZE", std::to_string(ample_shared_memory));
  }
  // Without the fall-back it is an error. UCX up to 1.20 warns of keys that nothing makes use of.
  const bool warns = version_ < version_number{1, 21};
  const bool posix =
      allows("posix") && !(warns && free_choice && free_shared_memory() < ample_shared_memory);
  const bool inherits = environment("UCX_MM_ALLOC") != nullptr ||
                        environment("UCX_SM_ALLOC") != nullptr ||
                        environment("UCX_ALLOC") != nullptr;
  if (posix && !inherits && environment("UCX_POSIX_ALLOC") == nullptr) {
    set_by_default("POSIX_ALLOC", "md");
  }
  if (allows("sysv") && !inherits && environment("UCX_SYSV_ALLOC") == nullptr) {
    set_by_default("SYSV_ALLOC", "md");
  }
}

void builder::set_by_default(const char* key, const std::string& value) {
  std::vector<std::string> spellings = find_configuration_key(key, version_).spellings;
  if (spellings.empty()) spellings = {key};  // one of UCP's own, which is the same everywhere
  defaults_.push_back({key, value, std::move(spellings)});
}

result<void> builder::apply() {
  if (auto set = set_log_level(); !set) return set;
  for (const setting& each : defaults_) {
    const bool of_process = each.key == key_of_sockets;
    if (auto applied = of_process ? apply_once(each) : apply_one(each, true); !applied) {
      return applied;
    }
  }
  for (const setting& each : wanted_) {
    if (auto applied = apply_one(each, false); !applied) return applied;
  }
  return {};
}

result<void> builder::apply_one(const setting& wanted, bool ours) {
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
  // A default of ours for a transport that this UCX was built without is no loss.
  if (ours && unknown) return {};
  return refused(ucx() + " refuses the configuration " + wanted.key + "=" + wanted.value +
                     " (UCX: " + words(refusal) + "); its transport may not be installed",
                 unknown ? make_error_code(errc::bad_configuration) : make_error(refusal));
}

/// Process-wide in UCX, whose threads read it from the first worker on: it is written once, and no
/// context goes on before.
result<void> builder::apply_once(const setting& ours) {
  static std::mutex mutex;
  static const ucp_api* decided = nullptr;
  const std::lock_guard guard(mutex);
  if (std::exchange(decided, &api_) == &api_) return {};
  return apply_one(ours, true);
}

result<void> builder::set_log_level() {
  // Process-wide in UCX, so the first context decides; another one's options may change it, but its
  // silence does not.
  static std::atomic<const ucp_api*> decided{nullptr};
  const bool first = decided.exchange(&api_) != &api_;
  const bool told = find("LOG_LEVEL") != nullptr || environment("UCX_LOG_LEVEL") != nullptr;
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
  for (const auto* const settings : {&defaults_, &wanted_}) {
    for (const setting& each : *settings) {
      for (const std::string& spelling : each.spellings) {
        if (!has(spelling)) values.emplace_back(spelling, each.value);
      }
    }
  }
  return values;
}

}  // namespace

result<configuration> configuration::make(ucp_api& api, const context_options& options) {
  ucp_config_t* read = nullptr;
  const ucs_status_t status = api.config_read(nullptr, nullptr, &read);
  if (status != UCS_OK) {
    return failure{
        status == UCS_ERR_INVALID_PARAM ? make_error_code(errc::bad_configuration)
                                        : make_error(status),
        "making a context: UCX can not read its configuration from the environment, UCX_* (UCX: " +
            words(status) + ")"};
  }
  configuration made(api, read);
  builder work(api, read);
  if (const auto taken = work.take(options); !taken) return taken.why();
  work.choose_transports();
  if (const auto checked = work.check_devices(); !checked) return checked.why();
  const auto segment_size = work.choose_segments();
  if (!segment_size) return segment_size.why();
  made.segment_size_ = *segment_size;
  work.choose_defaults();
  work.tell_segments(made.segment_size_);
  if (const auto applied = work.apply(); !applied) return applied.why();
  made.values_ = work.values();
  return made;
}

}  // namespace ucx::detail
