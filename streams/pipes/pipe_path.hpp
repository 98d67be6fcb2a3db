// The path that a pipe runs over, and how its ends wait.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include "ucx/client.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/payload.hpp"
#include "ucx/request.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

/// Longer than any program waits: the life of the peer bounds a pipe's operations.
inline constexpr std::chrono::nanoseconds pipe_patience = std::chrono::hours(24 * 365);
/// How an end says what is not the stream's bytes.
inline constexpr send_options short_pipe_send{.timeout = pipe_patience,
                                              .memory = send_memory::copied};

/// Connections to the other ends, which both directions of a pipe have in common. Members die last
/// to first: connections before what drives them.
struct pipe_path {
  std::string name = {};                  ///< For people: the URL, or the peer.
  std::optional<client> introduced = {};  ///< By whom; it has the worker of what has a URL.
  ucx::worker* driven = nullptr;
  std::vector<endpoint> peers = {};
  /// Until when its ends may take to begin, where that began before.
  std::optional<std::chrono::steady_clock::time_point> until = {};
};

/// Waits that another thread can end. One thread uses it.
class pipe_waiter {
 public:
  /// Waits for `most` requests at a time.    Lifetime: `driven`, until this is gone.
  pipe_waiter(worker& driven, std::stop_token stop, std::size_t most);
  ~pipe_waiter();
  pipe_waiter(const pipe_waiter&) = delete;
  pipe_waiter& operator=(const pipe_waiter&) = delete;

  /// Waits from now on have `limit` in all, however often they wake; zero: for long.
  void begin(std::chrono::nanoseconds limit) noexcept;
  /// Waits until one of `wanted` has ended, each of which is in flight.
  /// Errors: timed_out, canceled (a stop was requested), would_deadlock.
  std::error_code wait(std::span<request* const> wanted);
  /// Nothing waits any more: the worker may go before this does.
  void end() noexcept;
  bool stopped() const noexcept { return stop_.stop_requested(); }

 private:
  /// The first request ends when a stop is requested. It keeps its place, because the thread that
  /// drives the worker ends it there.
  struct shared {
    std::vector<request> awaited;
    request* stop = nullptr;  // that one: looking for it in the list would be a race
  };
  worker& driven_;
  std::stop_token stop_;
  std::shared_ptr<shared> shared_;
  std::chrono::nanoseconds limit_ = std::chrono::nanoseconds::zero();
  request timer_;  // ends with the time, by the worker's clock; made by the first wait
  bool has_timer_ = false;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

/// A path, or why it can not be opened.
using path_or_error = std::variant<std::unique_ptr<pipe_path>, error>;

}  // namespace ucx::detail
