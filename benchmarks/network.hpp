// The network between the two processes of a benchmark.
#pragma once

#include <string>

namespace ucx::benchmarks {

/// The loopback interface, or a pair of interfaces between two network namespaces: namespaces.sh
/// makes them, and says so in UCXIO_BENCHMARK_NETWORK ("DEVICE OWNERS-ADDRESS OWNERS-NAMESPACE").
struct network {
  std::string device = "lo";  ///< On both sides.
  std::string owner_address = "127.0.0.1";
  std::string owner_namespace;  ///< A file; empty: the owner is where the reader is.
};

/// Errors: std::runtime_error where the variable says something else.
const network& tested_network();

/// The cores: the owner has one to itself, the reader another, as far as there are any.
inline constexpr unsigned owner_core = 0;
inline constexpr unsigned reader_core = 1;
void pin_to_core(unsigned core) noexcept;
/// Where a side needs several threads: the first half of the machine, or the second.
void pin_to_half(unsigned half) noexcept;

enum class threads { one, several };

/// Makes a forked process the owner: at its end of the network, on its core, or its half of the
/// machine for several threads, and no longer alive than the reader. REQUIRES: the process runs one
/// thread, and has opened no socket.
void become_owner(threads wanted = threads::one);

}  // namespace ucx::benchmarks
