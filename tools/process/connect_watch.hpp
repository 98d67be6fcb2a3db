// A deadline for connecting that holds also where the library does not come back to look at it.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <thread>

namespace ucx::tool {

/// Where the address space of the process is limited (`ulimit -v`), UCX may look for memory again
/// and again within one call. No code of this program runs meanwhile. The library looks for room
/// before, and others may take it meanwhile. Then this ends the process, having said why, when
/// `limit` is over; elsewhere it does nothing. REQUIRES: the process serves no clients.
class connect_watch {
 public:
  connect_watch(const std::string& where, std::chrono::nanoseconds limit);

 private:
  std::optional<std::jthread> watch_;
};

}  // namespace ucx::tool
