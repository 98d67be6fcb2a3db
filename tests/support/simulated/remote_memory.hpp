// Memory of a simulated owner, reachable from a simulated reader: what streams are tested over.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "support/simulated/simulated_pair.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {

/// Streams have to die before it. What UCX forbids fails the test. With a pair that shares memory
/// the region is mapped, or read where it lies.
class remote_memory {
 public:
  explicit remote_memory(std::string content, const simulated_pair_options& options = {},
                         access granted = access::read_write)
      : pair(options),
        bytes(std::move(content)),
        exposed(options.shares_memory && !options.lends_memory
                    ? allocated(granted)
                    : memory_region(pair.owner_context, std::as_writable_bytes(std::span(bytes)),
                                    granted)),
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

  /// Returns the bytes as the owner sees them.
  std::string_view content() const {
    const std::span<std::byte> all = exposed.bytes();
    return {reinterpret_cast<const char*>(all.data()), all.size()};
  }

  /// Returns how many messages the reader has sent. Over messages, each transfer of a block or less
  /// takes one: the question of a read, or the bytes of a write.
  std::uint64_t transfers() const { return pair.reader_process.count(call::am_send); }

  /// Lets what is on its way arrive.
  void settle() { pair.network.advance(std::chrono::milliseconds(100)); }

  simulated_pair pair;
  std::string bytes;  ///< As the owner sees them, unless they are mapped.
  memory_region exposed;
  endpoint connection;
  remote_region region;

 private:
  memory_region allocated(access granted) {
    memory_region made = memory_region::allocate(pair.owner_context, bytes.size(), granted);
    std::memcpy(made.bytes().data(), bytes.data(), bytes.size());
    return made;
  }
};

/// Options of a pair whose transport moves bytes without the owner's help.
inline simulated_pair_options over_hardware() {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "tcp/lo", "rc_mlx5/mlx5_0:1"};
  return options;
}

}  // namespace ucx::test
