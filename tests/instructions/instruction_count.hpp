// Instructions of the library's own code, counted by callgrind, without those of the simulation.
#pragma once

#include <valgrind/callgrind.h>

#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "support/fake_ucp/fake_network.hpp"

namespace ucx::test {

/// Counts from its beginning to its end what `operations` operations take, both processes of the
/// simulation together. Callgrind writes what it has counted under the path's name; check.py reads
/// that, and the number of operations from the standard output.
/// REQUIRES: callgrind was started with --collect-atstart=no, and no other count is on.
class instruction_count {
 public:
  instruction_count(fake_network& network, const std::string& path, std::uint64_t operations)
      : network_(network), path_(path) {
    std::printf("%s\t%llu\n", path.c_str(), static_cast<unsigned long long>(operations));
    network_.watch_border([](bool) { CALLGRIND_TOGGLE_COLLECT; });
    CALLGRIND_ZERO_STATS;
    CALLGRIND_TOGGLE_COLLECT;
  }
  ~instruction_count() {
    CALLGRIND_TOGGLE_COLLECT;
    network_.watch_border(nullptr);
    CALLGRIND_DUMP_STATS_AT(path_.c_str());
  }
  instruction_count(const instruction_count&) = delete;
  instruction_count& operator=(const instruction_count&) = delete;

 private:
  fake_network& network_;
  std::string path_;
};

}  // namespace ucx::test
