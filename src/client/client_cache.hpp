// The clients that streams opened by URL share: the one global of the process.
#pragma once

#include <chrono>
#include <memory>

#include "base/result.hpp"

namespace ucx {
class url;
}

namespace ucx::detail {

class client_core;

/// Returns the process's client of `server`, which its users keep alive, and which lingers behind
/// them; connects if there is none, or if it is lost. Others who want the same server meanwhile get
/// that connection, or its failure. Safe from any thread, and during static destruction. Errors:
/// the connection's; forked_child.
result<std::shared_ptr<client_core>> shared_client(const url& server);

/// See client::linger.
void set_linger(std::chrono::nanoseconds longest);

}  // namespace ucx::detail
