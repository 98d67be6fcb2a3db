// A UCP context: what it is made of and can do, the regions it exposes, and the workers that serve
// them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/forked_child.hpp"
#include "base/logger.hpp"
#include "base/result.hpp"
#include "os/network_device.hpp"
#include "ucp/forked_ucp.hpp"
#include "ucp/piece_sizes.hpp"
#include "ucp/status.hpp"
#include "ucp/ucp_api.hpp"
#include "ucx/context.hpp"
#include "worker/context_workers.hpp"
#include "worker/region_table.hpp"

namespace ucx::detail {

/// Returns whether the options name the transport "socket" or "tls", ours: UCX is not called then.
bool asks_for_sockets(const context_options& options) noexcept;
/// Returns whether they name "tls".
bool asks_for_tls(const context_options& options) noexcept;
/// Returns whether they name "unix" beside it.
bool asks_for_unix_beside(const context_options& options) noexcept;

class configuration;
class device_choice;
class device_plane;
class process_watcher;
class tls_context;
enum class expected_rdma;

/// It has more members than a class should. Each is a separate fact about UCX's context, which is
/// found when that is made, and does not change.
class context_core : public std::enable_shared_from_this<context_core> {
 public:
  /// Makes the UCP context. `limit` counts where the options name no devices. Where they name the
  /// transport "socket", UCX is not called: `socket_api` plays it.
  static result<std::shared_ptr<context_core>> make(ucp_api& api, const context_options& options,
                                                    const device_limit& limit = {});
  /// Uses a context that was made elsewhere.
  static result<std::shared_ptr<context_core>> adopt(ucp_api& api, ucp_context_h made,
                                                     const adopted_context_options& options);
  ~context_core();
  context_core(const context_core&) = delete;
  context_core& operator=(const context_core&) = delete;

  /// Returns whom all that is made of the context calls.
  ucp_api& api() const noexcept { return is_inherited() ? forked_ucp() : api_; }
  /// Returns whether it is that of a process that this one was forked from.
  bool is_inherited() const noexcept { return made_.is_inherited(); }
  logger& log() const noexcept { return *log_; }
  ucp_context_h handle() const noexcept { return handle_; }
  /// Returns whether its connections are UCX's. Else they are sockets of this library.
  bool is_of_ucx() const noexcept { return api_.is_ucx(); }
  /// Returns whether those sockets speak TLS.
  bool is_by_tls() const noexcept { return tls_ != nullptr; }
  /// Returns the keys of those; null where they speak none.
  const std::shared_ptr<tls_context>& tls() const noexcept { return tls_; }
  /// Returns whether Unix sockets beside them are in the clear, between processes of one user.
  bool has_unix_beside() const noexcept { return has_unix_beside_; }
  /// Returns a status in words, with who reports it.
  std::string words_of(ucs_status_t status) const;
  /// Returns why a connection is lost.
  errc loss_of(ucs_status_t status, connection_stage stage) const noexcept;
  /// Returns it, where UCX reports it.
  std::optional<int> ucx_status_of(ucs_status_t status) const noexcept {
    return is_of_ucx() ? std::optional<int>(status) : std::nullopt;
  }
  feature features() const noexcept { return features_; }
  bool has(feature wanted) const noexcept { return includes(features_, wanted); }
  std::uint64_t incarnation() const noexcept { return incarnation_; }
  const std::vector<std::string>& resources() const noexcept { return resources_; }
  /// Returns what it does without, though it was named or is there, with the reasons.
  const std::vector<std::string>& unused() const noexcept { return unused_; }
  /// Returns whether nothing less than RDMA hardware will do (`context_options::require_rdma`).
  bool requires_rdma() const noexcept { return requires_rdma_; }
  /// Returns whether it has the operating system's copy between processes, CMA.
  bool reads_processes() const noexcept;
  result<context_attributes> attributes() const;
  std::string description() const;
  /// Returns whether only one thread at all may call UCX for it.
  bool single_threaded() const noexcept { return single_threaded_; }
  const std::vector<std::pair<std::string, std::string>>& configuration() const noexcept {
    return configuration_;
  }
  /// Returns whether every transport in use is of one host: then endpoints go without UCX's error
  /// handling, which excludes shared memory.
  bool same_host_only() const noexcept { return same_host_only_; }
  /// Returns whether what it allocates may be mapped by other processes, and it may map theirs.
  bool shares_memory() const noexcept { return shares_memory_ && api_.may_share_memory(); }
  /// Returns whether UCX's TCP transport was told to speak IPv6 (TCP_AF_PRIO begins with "inet6").
  /// Where it was not, a connection by IPv6 makes UCX write beyond its buffers (1.13.1, 1.22).
  bool speaks_ipv6() const noexcept { return speaks_ipv6_; }
  /// Returns how many payload bytes an answer to a read, or a write, carries: with our header they
  /// fit one segment of the wire. Messages of several segments abort the owner when their reader
  /// dies (1.13.1).
  std::size_t segment_size() const noexcept { return segment_size_; }
  std::size_t answer_piece() const noexcept { return pieces_.answer; }
  std::size_t write_piece() const noexcept { return pieces_.write; }

  /// UCX has closed a port of a worker, for want of descriptors.
  void port_is_lost() noexcept;
  /// Returns whether UCX's objects are not to be destroyed. UCX 1.13 may hold a pointer to memory
  /// that it has freed, behind the loss of a port, and its worker's end would follow it.
  bool leaves_ucx() const noexcept { return leaves_ucx_; }

  // Its parts. Safe from any thread.
  region_table& regions() noexcept { return regions_; }
  context_workers& workers() noexcept { return workers_; }
  /// Returns what has UCX's second context, for memory of devices. A thread begins to make that at
  /// the first call. Errors: feature_disabled, not_supported, and why there is none; likewise at
  /// each further call. A lack of memory or of threads is not for good: then it tries.
  result<std::shared_ptr<device_plane>> plane();
  /// As `plane()`, and waits until UCX has made it.
  result<std::shared_ptr<device_plane>> made_plane();
  /// It sees the ends of peers' processes.
  process_watcher& processes() noexcept { return *processes_; }

 private:
  context_core(ucp_api& api, const context_options& options, std::unique_ptr<logger> log);
  static result<std::shared_ptr<context_core>> make_of_sockets(ucp_api& ucx,
                                                               const context_options& options,
                                                               const device_limit& limit);
  /// Makes UCX's context with the devices that were chosen, and finds its resources. Returns what
  /// it was made by.
  result<detail::configuration> init(const context_options& options, const device_choice& chosen,
                                     expected_rdma hardware);
  void do_without(std::string unused);
  result<std::shared_ptr<device_plane>> make_plane() const;
  void take_segment(std::size_t segment) noexcept;
  bool resources_are_of_one_host() const noexcept;

  const counted_context counted_;  // until everything else is gone
  const process_stamp made_;
  ucp_api& api_;
  const std::shared_ptr<logger> log_;  // the plane's, too
  const std::unique_ptr<process_watcher> processes_;
  feature features_;
  ucp_context_h handle_ = nullptr;
  bool owned_ = true;
  std::atomic<bool> leaves_ucx_ = false;
  bool single_threaded_ = false;
  std::uint64_t incarnation_ = 0;
  std::size_t segment_size_ = 0;
  piece_sizes pieces_;
  bool same_host_only_ = false;
  bool speaks_ipv6_ = false;
  bool shares_memory_ = true;
  bool requires_rdma_ = false;
  std::shared_ptr<tls_context> tls_;
  bool has_unix_beside_ = false;
  std::vector<std::string> resources_;
  std::vector<std::string> unused_;
  std::vector<std::pair<std::string, std::string>> configuration_;

  /// The options and devices of this context, from which the plane is made.
  struct recipe {
    context_options options;
    std::vector<std::string> devices;
  };
  std::optional<recipe> recipe_;  // none where the context was made elsewhere
  std::mutex plane_mutex_;
  std::shared_ptr<device_plane> plane_;
  std::optional<failure> why_no_plane_;

  region_table regions_;
  context_workers workers_;
};

}  // namespace ucx::detail
