// A network of simulated processes in virtual time, under the seam to UCX.
#pragma once

#include <ucs/type/status.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "support/fake_ucp/fault_plan.hpp"
#include "support/fake_ucp/seam_call.hpp"
#include "ucp/ucp_api.hpp"

namespace ucx::test {

namespace sim {
class fabric;
struct process_state;
}  // namespace sim

enum class time_mode {
  simulated,  ///< Time passes when everybody waits. One thread.
  real,       ///< The machine's clock: for workers with threads of their own.
};

/// How the simulated transport behaves. The default is UCX over TCP, where one-sided operations are
/// emulated: the owner's progress answers them.
struct link_options {
  time_mode time = time_mode::simulated;
  std::chrono::nanoseconds latency = std::chrono::microseconds(10);
  double bytes_per_second = 5e9;
  std::size_t segment = 1U << 20U;         ///< A message moves in pieces of this size.
  std::size_t inline_limit = 8192;         ///< Sends up to this size complete inside the call.
  std::size_t rndv_threshold = 1U << 20U;  ///< Larger messages are fetched by the receiver.
  std::size_t max_am_header = 8139;
  bool lasting_data = false;  ///< Handlers may keep messages of one piece, as over shared memory.
  /// What a direction holds that its receiver has not taken: a stopped receiver stalls the sender.
  std::size_t socket_buffer = 4U << 20U;

  /// What a request of an active message is for is not carried: its receiver finds as many bytes,
  /// whatever they are. For tests of where and when, with more bytes than a test can afford to
  /// copy.
  bool weightless = false;

  /// False: hardware; the owner's process takes no part and one-sided operations are checked.
  bool emulated_rma = true;
  /// Memory of `UCP_MEM_MAP_ALLOCATE` can be mapped by peers (`rkey_ptr`).
  bool shared_memory = false;
  std::size_t allocation_limit = std::size_t{1} << 32U;
  /// `mem_query` takes memory of devices for the host's.
  bool mistakes_devices = false;

  /// How soon, and as what, the death of a process shows at its peers (mode PEER only).
  std::chrono::nanoseconds death_notice = std::chrono::milliseconds(5);
  ucs_status_t death_status = UCS_ERR_CONNECTION_RESET;
  /// The host that a listener sees its peers come from; empty: where they connected to.
  std::string client_host = {};
  /// What connecting to a port without listener ends with.
  ucs_status_t refused_status = UCS_ERR_NOT_CONNECTED;
  /// A failing connection calls the error handler before it completes the operations, or after.
  bool error_handler_first = false;
  /// A forced close completes the operations inside the call, or from a later progress.
  bool close_calls_back = false;
  /// Destroying a worker completes what is left with `UCS_ERR_CANCELED`, or forgets it.
  bool destroy_calls_back = false;

  unsigned version_major = 1;
  unsigned version_minor = 13;
  unsigned version_release = 1;
  std::vector<std::string> resources = {"self/memory0", "tcp/lo", "tcp/eth0"};
  std::vector<std::string> lanes = {};             ///< Those of a connection; empty: all resources.
  std::vector<std::string> unknown_keys = {};      ///< `config_modify` refuses these.
  std::vector<detail::rdma_port> rdma_ports = {};  ///< What the system lists; see `resources`.
  /// What a process may lock, which a worker with RDMA hardware takes for its buffers.
  std::size_t lockable = std::numeric_limits<std::size_t>::max();

  /// What one round of progress costs, and the largest step that time takes while all wait.
  std::chrono::nanoseconds progress_cost = std::chrono::nanoseconds(50);
  std::chrono::nanoseconds idle_step = std::chrono::milliseconds(1);
};

/// One simulated process: whatever is made through its `api()` belongs to it.
class fake_process {
 public:
  fake_process(sim::fabric& network, sim::process_state& state);
  ~fake_process();
  fake_process(const fake_process&) = delete;
  fake_process& operator=(const fake_process&) = delete;

  detail::ucp_api& api() noexcept { return *api_; }
  const std::string& name() const noexcept;

  /// Lets `pump` stand for what the process does by itself (progress of its workers). It is called
  /// while another process waits or makes progress.
  void on_pump(std::function<void()> pump);

  /// SIGSTOP: does nothing any more, while its sockets stay open.
  void stop();
  /// SIGCONT.
  void resume();
  /// SIGKILL: its peers are told after the link's `death_notice`. Its objects can still be closed
  /// and destroyed, as a test has to; any other call into it is counted in `calls_after_death`.
  void kill();

  /// Lets contexts that it makes from now on map real memory, past the simulated network.
  void share_memory() noexcept;

  /// Its cheap clock is so far behind, as the system's is where the processor is taken away.
  void let_cheap_clock_lag(std::chrono::nanoseconds by) noexcept;

  /// What the process sends may change until it is sent: an answer reads memory that peers write.
  void let_sources_change();

  bool stopped() const;
  bool killed() const;
  std::uint64_t calls_after_death() const;

  fault_plan& faults() noexcept;
  std::uint64_t count(call which) const;

 private:
  sim::fabric& network_;
  sim::process_state& state_;
  std::unique_ptr<detail::ucp_api> api_;
};

/// The begin of an operation at the process that calls, or the end of what it moves: of a message
/// and of a put at the peer, of a get where it was asked for.
struct sighting {
  call kind = call::am_send;
  bool begins = false;
  std::span<const std::byte> header = {};  ///< Of an active message.
  std::size_t size = 0;                    ///< Of the payload.
};

/// How many objects exist that the user of the seam has to give back.
struct live_objects {
  std::size_t configurations = 0;
  std::size_t contexts = 0;
  std::size_t workers = 0;
  std::size_t addresses = 0;
  std::size_t listeners = 0;
  std::size_t connection_requests = 0;
  std::size_t endpoints = 0;  ///< Those that were created by a call.
  std::size_t memories = 0;
  std::size_t rkey_buffers = 0;
  std::size_t rkeys = 0;
  std::size_t requests = 0;
  std::size_t messages = 0;  ///< Received data that a handler kept.

  friend bool operator==(const live_objects&, const live_objects&) = default;
};

/// The network: time, the processes on it, and what they did wrong.
/// Everything that was made through its processes must be gone before it.
/// Threads: sharing one object is safe.
class fake_network {
 public:
  explicit fake_network(const link_options& link = {}, std::uint64_t seed = 1);
  ~fake_network();
  fake_network(const fake_network&) = delete;
  fake_network& operator=(const fake_network&) = delete;

  fake_process& add_process(std::string name, std::function<void()> pump = {});

  /// The link's properties, which may change while nothing runs.
  link_options& link() noexcept;
  /// Faults for the calls of every process; those of the process itself come first.
  fault_plan& faults() noexcept;

  detail::clock::time_point now() const;
  /// Lets time pass; the processes are pumped meanwhile.
  void advance(std::chrono::nanoseconds duration);
  /// Lets time pass until `done`, for `limit` at most, and returns whether it was done.
  bool run_until(const std::function<bool()>& done,
                 std::chrono::nanoseconds limit = std::chrono::seconds(60));

  /// Calls `watcher` for each message, get and put; it must not call into the network.
  void watch(std::function<void(const sighting&)> watcher);

  /// Calls `watcher` whenever the thread enters the simulation's own code, or leaves it: to tell
  /// what the library costs from what the simulation does. REQUIRES: simulated time.
  void watch_border(void (*watcher)(bool inside));

  /// How often the processes made a call, and how many bytes of payload they moved by it.
  std::uint64_t count(call which) const;
  std::uint64_t bytes(call which) const;

  live_objects live() const;
  /// What was done that UCX forbids or that aborts it: one sentence each.
  std::vector<std::string> violations() const;
  void forget_violations();
  /// Fails the current test if anything is alive or was violated.
  void expect_clean() const;

 private:
  void expect_requests_freed() const;

  std::unique_ptr<sim::fabric> fabric_;
  std::vector<std::unique_ptr<fake_process>> processes_;
};

/// Returns whether anything of what was violated has these words.
inline bool is_mentioned(const fake_network& network, const std::string& words) {
  for (const std::string& each : network.violations()) {
    if (each.find(words) != std::string::npos) return true;
  }
  return false;
}

}  // namespace ucx::test
