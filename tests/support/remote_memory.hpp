// Memory of a simulated owner, reachable from a simulated reader: what streams are tested over.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "support/simulated_pair.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {

/// Streams have to die before it. What UCX forbids fails the test.
class remote_memory {
 public:
  explicit remote_memory(std::string content, const simulated_pair_options& options = {},
                         access granted = access::read_write)
      : pair(options),
        bytes(std::move(content)),
        exposed(pair.owner_context, std::as_writable_bytes(std::span(bytes)), granted),
        connection(pair.connect()),
        region(connection, exposed.descriptor()) {
    if (includes(granted, access::write)) pair.owner_process.let_sources_change();
    connection.wait_connected();
  }
  ~remote_memory() {
    for (const std::string& violation : pair.network.violations()) ADD_FAILURE() << violation;
  }
  remote_memory(const remote_memory&) = delete;
  remote_memory& operator=(const remote_memory&) = delete;

  /// Returns how many messages the reader has sent. Over messages, each transfer of a block or less
  /// takes one: the question of a read, or the bytes of a write.
  std::uint64_t transfers() const { return pair.reader_process.count(call::am_send); }

  /// Lets what is on its way arrive.
  void settle() { pair.network.advance(std::chrono::milliseconds(100)); }

  simulated_pair pair;
  std::string bytes;  ///< As the owner sees them.
  memory_region exposed;
  endpoint connection;
  remote_region region;
};

/// Options of a pair whose transport moves bytes without the owner's help.
inline simulated_pair_options over_hardware() {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "tcp/lo", "rc_mlx5/mlx5_0:1"};
  return options;
}

}  // namespace ucx::test
