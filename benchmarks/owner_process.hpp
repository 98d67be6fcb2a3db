// The process whose memory the benchmarks read and write, and how to reach it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "network.hpp"
#include "raw_ucx.hpp"
#include "ucx/context.hpp"
#include "ucx/peer_address.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::benchmarks {

/// Over which transport; the settings are the same for ucxio and for raw UCX. `one_host` is memory
/// of the program's, which UCX knows nothing of, within one host: ours read it where it lies and
/// write by message over TCP; raw UCX has its shared memory, with CMA, and no messages.
enum class plane { tcp, shared_memory, one_host };

ucx::context_options options_of(plane where);
/// The raw settings that a context of ours has in force.
raw_fabric fabric_of(plane where, const ucx::context& ours);

/// A region that ucxio and raw UCX expose over one plane. Over TCP both expose the same memory.
struct exposed_memory {
  plane where = plane::tcp;
  std::size_t size = 0;
  std::function<void(std::span<std::byte>)> fill;
};

/// A forked process, pinned to `owner_core`, that serves one party at a time, spinning: the other
/// party's worker costs nothing meanwhile. `raw_asleep` is `raw`, but sleeps while nothing comes.
class owner_process {
 public:
  enum class party : std::uint32_t { nobody, ours, raw, raw_asleep, quit };
  struct target {
    ucx::worker_address address;
    ucx::remote_descriptor descriptor;
    raw_target raw;
    /// The number of the region among those of its raw owner.
    std::uint64_t raw_region = 0;
  };

  /// REQUIRES: this process has not used UCX yet, and runs one thread.
  explicit owner_process(const std::vector<exposed_memory>& memories);
  owner_process(const owner_process&) = delete;
  owner_process& operator=(const owner_process&) = delete;
  ~owner_process();

  /// The memories, in the order in which they were given.
  const std::vector<target>& targets() const noexcept { return targets_; }

  /// Serves `whom` from now on; returns when it does.
  void serve(party whom);
  /// Returns how much processor time it has used so far.
  std::chrono::nanoseconds processor_time() const;

 private:
  struct turn;

  turn* turn_ = nullptr;
  ::pid_t child_ = -1;
  std::vector<target> targets_;
};

}  // namespace ucx::benchmarks
