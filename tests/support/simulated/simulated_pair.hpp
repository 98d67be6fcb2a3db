// Two simulated processes, an owner and a reader, with a context and a worker each.
#pragma once

#include <cstdint>
#include <system_error>
#include <utility>

#include "support/fake_ucp/fake_network.hpp"
#include "ucx/context.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/worker.hpp"
#include "worker/core_access.hpp"

namespace ucx::test {

struct simulated_pair_options {
  link_options link = {};
  std::uint64_t seed = 1;
  context_options owner_context = {};
  context_options reader_context = {};
  worker_options owner_worker = {};
  worker_options reader_worker = {};
  bool shares_memory = false;  ///< What is allocated may be mapped, past the network.
  /// With it: `remote_memory` is the owner's program's, which may be read where it lies.
  bool lends_memory = false;
};

/// Two processes that share memory, and can read each other's.
inline simulated_pair_options one_host() {
  simulated_pair_options options;
  options.link.resources = {"self/memory0", "posix/memory", "cma/memory"};
  options.link.segment = 8U << 10U;
  options.owner_context.transports = {"posix", "cma", "self"};
  options.reader_context.transports = {"posix", "cma", "self"};
  return options;
}

/// The owner's worker makes progress while the reader waits, and the other way round, so that a
/// test of one thread can use blocking calls on either side. Endpoints, regions and streams of a
/// test have to die before the pair, which fails the test if UCX was misused or anything leaked.
class simulated_pair {
 public:
  explicit simulated_pair(const simulated_pair_options& options = {})
      : network(options.link, options.seed),
        owner_process(network.add_process("owner")),
        reader_process(network.add_process("reader")),
        owner_context(make_context(owner_process, options.owner_context, options.shares_memory)),
        reader_context(make_context(reader_process, options.reader_context, options.shares_memory)),
        owner(owner_context, options.owner_worker),
        reader(reader_context, options.reader_worker) {
    // In real time threads make progress, and one may be inside a pump when its worker goes.
    if (options.link.time == time_mode::real) return;
    owner_process.on_pump([this] { owner.progress(); });
    reader_process.on_pump([this] { reader.progress(); });
  }

  ~simulated_pair() {
    owner_process.on_pump({});
    reader_process.on_pump({});
  }

  simulated_pair(const simulated_pair&) = delete;
  simulated_pair& operator=(const simulated_pair&) = delete;

  /// Connects the reader to the owner, by worker address.
  endpoint connect(endpoint_options options = {}) {
    return endpoint(reader, owner.address(), std::move(options));
  }

  fake_network network;

 private:
  // Dies after everything that was made on the network, and before the network.
  struct last_look {
    const fake_network& network;
    ~last_look() { network.expect_clean(); }
  };
  last_look last_look_{network};

 public:
  fake_process& owner_process;
  fake_process& reader_process;
  context owner_context;
  context reader_context;
  worker owner;
  worker reader;

 private:
  static context make_context(fake_process& process, const context_options& options,
                              bool shares_memory) {
    if (shares_memory) process.share_memory();
    std::error_code ec;
    context made = detail::core_access::make_context(process.api(), options, ec);
    if (ec) throw std::system_error(ec, process.name());
    return made;
  }
};

}  // namespace ucx::test
