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

/// Returns the process's client of `server`; connects if there is none, or if it is known to be
/// lost. Its users keep it alive, and it lingers behind them. Other callers for that server
/// meanwhile get that connection, or its failure. Safe from any thread, and during static
/// destruction. Errors: the connection's; forked_child.
result<std::shared_ptr<client_core>> shared_client(const url& server);

/// Returns the same client when its server has shown that it is there; connects anew where it is
/// gone. For requests that are not sent twice. Waits for `heartbeat_timeout`, and for connecting,
/// at most. Errors: those of `shared_client`; timed_out.
result<std::shared_ptr<client_core>> heard_client(const url& server);

/// See client::linger.
void set_linger(std::chrono::nanoseconds longest);

}  // namespace ucx::detail
