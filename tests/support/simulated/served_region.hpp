// An owner's memory and a reader's view of it, over the simulated network.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/bytes/pattern.hpp"
#include "support/simulated/simulated_pair.hpp"
#include "ucx/memory_region.hpp"
#include "ucx/remote_region.hpp"

namespace ucx::test {

/// Makes segments of both sides as large as that many payload bytes of ours need, so that transfers
/// of a few KiB go in many pieces.
inline simulated_pair_options with_pieces_of(std::size_t piece,
                                             simulated_pair_options options = {}) {
  const std::string segment = std::to_string(piece + 4096);
  for (context_options* each : {&options.owner_context, &options.reader_context}) {
    each->configuration["TX_SEG_SIZE"] = segment;
    each->configuration["RX_SEG_SIZE"] = segment;
  }
  return options;
}

/// `memory` holds pattern 0 in the beginning.
struct served_region {
  explicit served_region(std::size_t size, const simulated_pair_options& options = {},
                         access granted = access::read_write)
      : pair(options),
        memory(pattern(size)),
        exposed(pair.owner_context, std::span<std::byte>(memory), granted),
        connection(pair.connect()),
        region(connection, exposed.descriptor()) {}

  fake_network& network() { return pair.network; }

  simulated_pair pair;
  std::vector<std::byte> memory;
  memory_region exposed;
  endpoint connection;
  remote_region region;
};

}  // namespace ucx::test
