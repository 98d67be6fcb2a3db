// Host names, looked up within a deadline: the system's resolver knows none.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/result.hpp"
#include "ucx/socket_address.hpp"

namespace ucx::detail {

/// The outcome of a lookup.
struct resolution {
  std::vector<socket_address> addresses = {};
  std::error_code failure = {};
  std::string words = {};  ///< The resolver's own, of a failure.
};

/// Asks the system's resolver, and waits for it as long as it takes.
resolution ask_resolver(const std::string& host, std::uint16_t port);

/// One name, looked up on a separate thread. A lookup that is given up leaves that thread alone: it
/// ends when the system's resolver returns, and does not call `on_done`. There are 64 such threads
/// at most; then a lookup ends with `busy`.
class lookup {
 public:
  using resolver = resolution (*)(const std::string& host, std::uint16_t port);

  /// `on_done` is called on that thread, or before this returns where nothing has to be looked up;
  /// not any more when the lookup is gone. REQUIRES: it throws nothing. Where there is no memory
  /// for a thread this throws std::bad_alloc.
  lookup(std::string_view host, std::uint16_t port, std::function<void()> on_done,
         resolver system = &ask_resolver);
  ~lookup();
  lookup(const lookup&) = delete;
  lookup& operator=(const lookup&) = delete;

  bool done() const;
  /// Waits; returns whether it is done.
  bool wait_until(std::chrono::steady_clock::time_point deadline) const;
  /// Returns what was found. REQUIRES: it is done.
  resolution take();

 private:
  struct state;
  std::shared_ptr<state> state_;
};

/// Returns all addresses of `host`, with `port`. Waits for the resolver so long at most.
result<std::vector<socket_address>> look_up(std::string_view host, std::uint16_t port,
                                            std::chrono::nanoseconds timeout);

}  // namespace ucx::detail
