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
#include <utility>
#include <variant>
#include <vector>

#include "pipes/pipe_introduction.hpp"
#include "ucx/client.hpp"
#include "ucx/endpoint.hpp"
#include "ucx/error.hpp"
#include "ucx/payload.hpp"
#include "ucx/request.hpp"
#include "ucx/request_source.hpp"
#include "ucx/worker.hpp"

namespace ucx::detail {

/// Longer than any program waits: the life of the peer bounds a pipe's operations.
inline constexpr std::chrono::nanoseconds pipe_patience = std::chrono::hours(24 * 365);
/// How an end says what is not the stream's bytes.
inline constexpr send_options short_pipe_send{.timeout = pipe_patience,
                                              .memory = send_memory::copied};

/// An end of a pipe that no call waits for.
class pipe_woken {
 public:
  virtual ~pipe_woken() = default;
  /// Something that it waits for has ended: it is to look again. From any thread.
  virtual void wake() noexcept = 0;
};

/// A request that an end waits for, again and again: it tells of the end once.
class pipe_request : public request {
 public:
  pipe_request() noexcept = default;
  pipe_request(request&& started) noexcept  // NOLINT(google-explicit-constructor): it is one
      : request(std::move(started)) {}
  /// Wakes `told` when it ends; now, if it has ended meanwhile.
  void wake(const std::weak_ptr<pipe_woken>& told);
  /// Gives up what is under way without waiting; `keep_alive` owns its memory.
  void leave(std::shared_ptr<const void> keep_alive = nullptr) noexcept;

 private:
  bool tells_ = false;
};

/// Connections to the other ends, which both directions of a pipe have in common. Members die last
/// to first: connections before what drives them.
struct pipe_path {
  std::string name = {};                  ///< For people: the URL, or the peer.
  std::optional<client> introduced = {};  ///< By whom; it has the worker of what has a URL.
  ucx::worker* driven = nullptr;
  std::vector<endpoint> peers = {};
  std::optional<pipe_token> key = {};  ///< Of the last meeting.
  /// Until when its ends may take to begin, where that began before.
  std::optional<std::chrono::steady_clock::time_point> until = {};
  /// Whom to wake, where no call waits.
  std::optional<std::weak_ptr<pipe_woken>> woken = {};
};

/// Destroys `what` in a round of `driven`: there the end of a connection does not wait. On this
/// thread, unless the worker has its own, or makes a round.
template <class Connections>
void let_go_in_round(worker& driven, Connections what) noexcept {
  try {
    request_source_options options;
    options.on_stop = [kept = std::optional<Connections>(std::move(what))](
                          std::error_code) mutable { kept.reset(); };
    request_source leaving(driven, std::move(options));
    leaving.start().cancel();
  } catch (...) {  // without memory it may wait
  }
}

/// Waits that another thread can end. One thread uses it. Where no call waits, it says
/// `would_block` instead, and wakes the end when it is worth to try again: whatever waits can be
/// begun again.
class pipe_waiter {
 public:
  /// Waits for `most` requests at a time.    Lifetime: the worker, until this is gone.
  pipe_waiter(const pipe_path& path, std::stop_token stop, std::size_t most);
  ~pipe_waiter();
  pipe_waiter(const pipe_waiter&) = delete;
  pipe_waiter& operator=(const pipe_waiter&) = delete;

  /// Waits from now on have `limit` in all, however often they wake; zero: for long.
  void begin(std::chrono::nanoseconds limit) noexcept;
  /// Waits until one of `wanted` has ended, each of which is in flight.
  /// Errors: timed_out, canceled (a stop was requested), would_deadlock; would_block.
  std::error_code wait(std::span<pipe_request* const> wanted);
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
  std::error_code wait_in_call(std::span<pipe_request* const> wanted);
  std::error_code leave_to_wake(std::span<pipe_request* const> wanted);

  worker& driven_;
  const std::optional<std::weak_ptr<pipe_woken>> woken_;
  std::stop_token stop_;
  std::shared_ptr<shared> shared_;
  std::chrono::nanoseconds limit_ = std::chrono::nanoseconds::zero();
  pipe_request timer_;  // ends with the time, by the worker's clock; made by the first wait
  bool has_timer_ = false;
  std::chrono::steady_clock::time_point timer_ends_;
  std::optional<std::stop_callback<std::function<void()>>> on_stop_;
};

/// A path, or why it can not be opened.
using path_or_error = std::variant<std::unique_ptr<pipe_path>, error>;

}  // namespace ucx::detail
