// An owner and a reader that knows nothing of it but a key, over the simulation.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/access.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_descriptor.hpp"

namespace ucx::test {

inline constexpr std::size_t foreign_size = 4096;
/// More than UCX has at once of what it emulates.
inline constexpr std::size_t long_foreign_size = std::size_t{3} << 20U;

inline simulated_pair_options by_hardware() {
  simulated_pair_options options;
  options.link.emulated_rma = false;
  options.link.resources = {"self/memory0", "rc_mlx5/mlx5_0:1"};
  return options;
}

/// The owner has this library, but the reader is told of its key alone.
struct foreign_pair {
  explicit foreign_pair(const simulated_pair_options& options, std::size_t size = foreign_size)
      : pair(options), memory(pattern(size)) {}

  endpoint connect(bool plain = true) {
    endpoint made(pair.reader, pair.owner.address(), {.plain_peer = plain});
    made.wait_connected();
    return made;
  }
  remote_descriptor descriptor(access granted = access::read_write) const {
    const remote_descriptor own = owned.descriptor();
    return remote_descriptor::of_key(own.address, own.size, own.remote_key, granted);
  }

  simulated_pair pair;
  std::vector<std::byte> memory;
  memory_region owned{pair.owner_context, std::span(memory), access::read_write};
};

}  // namespace ucx::test
