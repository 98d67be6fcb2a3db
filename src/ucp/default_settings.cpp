#include "ucp/default_settings.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "os/device_name.hpp"
#include "os/rdma_port.hpp"
#include "ucp/configuration_key.hpp"
#include "ucp/configuration_value.hpp"
#include "ucp/resource_error.hpp"

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

}  // namespace

default_settings::default_settings(ucp_api& api, version_number version,
                                   const asked_settings& asked, const allowed_transports& allowed,
                                   expected_rdma hardware)
    : api_(api),
      version_(version),
      asked_(asked),
      allowed_(allowed),
      counts_on_rdma_(hardware == expected_rdma::as_shown && finds_rdma()),
      segment_size_(default_segment) {}

result<void> default_settings::choose() {
  if (auto chosen = choose_segments(); !chosen) return chosen;
  reuse_ports();
  copy_what_is_sent();
  connect_by_tcp_first();
  connect_without_blocking();
  let_in_many();
  choose_shared_memory();
  tell_segments();
  do_without_events();
  return {};
}

/// A port with a hindrance is none that UCX could use, whatever its state is.
bool default_settings::finds_rdma(bool software_alone) const {
  static constexpr std::array<std::string_view, 7> verbs{
      "rc_verbs", "rc_mlx5", "dc_mlx5", "ud_verbs", "ud_mlx5", "gga_mlx5", "srd"};
  if (std::none_of(verbs.begin(), verbs.end(), [this](auto each) { return allows(each); })) {
    return false;
  }
  const std::string devices = without_blanks(asked_.in_force("NET_DEVICES", "UCX_NET_DEVICES"));
  const std::vector<rdma_port> ports = api_.rdma_ports();
  return std::any_of(ports.begin(), ports.end(), [&](const rdma_port& each) {
    return each.is_usable() && each.hindrance.empty() && allows_device(devices, each.name) &&
           (each.is_software || !software_alone);
  });
}

/// Returns whether options or environment have this key, as it is spelled here.
bool default_settings::is_told(const char* key) const {
  return asked_.find(key) != nullptr || inherited((std::string("UCX_") + key).c_str()) != nullptr;
}

void default_settings::set(const char* key, const std::string& value) {
  std::vector<std::string> spellings = find_configuration_key(key, version_).spellings;
  if (spellings.empty()) spellings = {key};  // one of UCP's own, which is the same everywhere
  all_.push_back({key, value, std::move(spellings)});
}

/// Returns what the options or the environment say about a segment.
result<std::optional<std::uint64_t>> default_settings::segment(const char* key,
                                                               const char* variable) const {
  const configuration_key known = find_configuration_key(key, version_);
  const configuration_setting* const set = asked_.find(known.spellings.front());
  const char* const from_outside = inherited(variable);
  if (set == nullptr && from_outside == nullptr) return std::optional<std::uint64_t>();
  const std::string name = set != nullptr ? set->key : variable;
  const std::string value = set != nullptr ? set->value : from_outside;
  const std::optional<std::uint64_t> size = read_size(value);
  if (!size || *size < smallest_segment || *size > largest_segment) {
    return refused_configuration("bad value in the UCX configuration " + name + "=" + value +
                                 "; expected a number of bytes from 1k to 32m");
  }
  return size;
}

result<void> default_settings::choose_segments() {
  if (!allows("tcp")) return {};
  const auto sent = segment("TCP_TX_SEG_SIZE", "UCX_TCP_TX_SEG_SIZE");
  if (!sent) return sent.why();
  const auto received = segment("TCP_RX_SEG_SIZE", "UCX_TCP_RX_SEG_SIZE");
  if (!received) return received.why();
  // UCX makes no worker that could send more in one piece than it can receive.
  if (*sent && *received && **sent > **received) {
    return refused_configuration("TCP_TX_SEG_SIZE (" + std::to_string(**sent) +
                                 " bytes) is above TCP_RX_SEG_SIZE (" + std::to_string(**received) +
                                 " bytes)");
  }
  segment_size_ = sent->value_or(std::min(default_segment, received->value_or(default_segment)));
  if (!*sent) set("TCP_TX_SEG_SIZE", std::to_string(segment_size_));
  if (!*received) set("TCP_RX_SEG_SIZE", std::to_string(segment_size_));
  return {};
}

/// Without it, a restarted server finds its port busy.
void default_settings::reuse_ports() {
  constexpr std::array<const char*, 3> keys{"CM_REUSEADDR", "TCP_CM_REUSEADDR",
                                            "RDMA_CM_REUSEADDR"};
  if (std::none_of(keys.begin(), keys.end(), [this](auto key) { return is_told(key); })) {
    set("CM_REUSEADDR", "y");
  }
}

/// A zero-copy send that has begun ends the process when its peer is gone. `uct_tcp_ep_sendv`
/// completes it twice (1.13.1 to 1.22), and an assertion of UCX notices. Where RDMA is there, its
/// zero-copy transfers are worth more.
void default_settings::copy_what_is_sent() {
  if (allows("tcp") && !counts_on_rdma_ && !is_told("ZCOPY_THRESH")) set("ZCOPY_THRESH", "inf");
}

/// UCX's first choice is RDMA's connection manager, by which a peer without RDMA does not answer.
/// UCX tries TCP's only when that has failed, which takes longer than any caller waits. The lanes
/// of a connection do not depend on this: by TCP's, too, they are RDMA's where both sides have it.
void default_settings::connect_by_tcp_first() {
  constexpr const char* managers = "SOCKADDR_TLS_PRIORITY";
  if (allows("tcp") && counts_on_rdma_ && !is_told(managers)) set(managers, "tcp,rdmacm");
}

/// Else UCX connects by a call that blocks the thread that drives progress. Where the peer resets
/// the connection before UCX's first word, UCX also frees a lane that it goes on using.
/// `uct_tcp_ep_connect` counts the lane as its own only afterwards (1.22).
void default_settings::connect_without_blocking() {
  constexpr const char* key = "TCP_CONN_NB";
  const std::string spelling = find_configuration_key(key, version_).spellings.front();
  const bool told = asked_.find(spelling) != nullptr || inherited("UCX_TCP_CONN_NB") != nullptr ||
                    inherited("UCX_CONN_NB") != nullptr;
  if (allows("tcp") && !told) set(key, "y");
}

/// UCX 1.13 has no more than 1024 sockets to a worker that its thread looks after, of which each
/// that was let in is one. It frees the endpoint of one more, and keeps it in the list of those
/// that it ends with the worker (uct_tcp_listener_conn_req_handler). The number is the process's; a
/// worker that is made takes eight bytes for each.
void default_settings::let_in_many() {
  if (version_ >= version_number{1, 14} || !allows("tcp")) return;
  if (inherited("UCX_ASYNC_MAX_EVENTS") != nullptr) return;
  set("ASYNC_MAX_EVENTS", std::to_string(most_sockets));
  all_.back().of_process = true;
}

/// Addresses of version 1, UCX's default, say nothing of segments. A peer with longer ones sends
/// them, and UCX writes behind its buffer (uct_tcp_ep_progress_am_rx, 1.22), or ends the process by
/// an assertion (1.13.1). Where RDMA is there, its lanes are chosen by what version 1 says, which
/// is more exact.
void default_settings::tell_segments() {
  constexpr const char* key = "ADDRESS_VERSION";
  if (!allows("tcp") || counts_on_rdma_ || segment_size_ > largest_told_segment) return;
  if (!is_told(key)) set(key, "v2");
}

/// Soft-RoCE may report twice that a queue pair has drained (Linux 6.12). UCX up to 1.22 ends the
/// process where both come before its next round (uct_ib_device_async_event_schedule_callback).
/// Without the reports UCX keeps the queue pairs of connections that have ended until their worker
/// goes, as it did before Linux had them.
void default_settings::do_without_events() {
  constexpr const char* key = "IB_ASYNC_EVENTS";
  const std::string spelling = find_configuration_key(key, version_).spellings.front();
  const bool told = asked_.find(spelling) != nullptr || inherited("UCX_IB_ASYNC_EVENTS") != nullptr;
  if (counts_on_rdma_ && !told && finds_rdma(true)) set(key, "n");
}

/// UCX may find `/dev/shm` too small. It looks for space when it makes a context, and takes it when
/// it makes a worker. Where another process took it meanwhile, UCX falls back on private memory and
/// reads through a null pointer (uct_mm_iface_recv_desc_init, 1.14 to 1.22).
void default_settings::choose_shared_memory() {
  if (version_ < version_number{1, 14}) return;
  // Where the choice is UCX's, posix is left out in time.
  const bool free_choice = !is_told("TLS");
  if (free_choice && inherited("UCX_POSIX_SHM_MIN_SIZE") == nullptr) {
    set("POSIX_SHM_MIN_SIZE", std::to_string(ample_shared_memory));
  }
  // Without the fall-back it is an error. UCX up to 1.20 warns of keys that nothing makes use of.
  const bool warns = version_ < version_number{1, 21};
  const bool posix =
      allows("posix") && !(warns && free_choice && free_shared_memory() < ample_shared_memory);
  const bool inherits = inherited("UCX_MM_ALLOC") != nullptr ||
                        inherited("UCX_SM_ALLOC") != nullptr || inherited("UCX_ALLOC") != nullptr;
  if (posix && !inherits && inherited("UCX_POSIX_ALLOC") == nullptr) set("POSIX_ALLOC", "md");
  if (allows("sysv") && !inherits && inherited("UCX_SYSV_ALLOC") == nullptr) {
    set("SYSV_ALLOC", "md");
  }
}

}  // namespace ucx::detail
