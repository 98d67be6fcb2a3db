#include "pipes/pipe_door.hpp"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <utility>

#include "pipes/pipe_introduction.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/message.hpp"

namespace ucx::detail {

/// Those who said that they are there, and were not looked at yet.
struct pipe_door::knocks {
  std::mutex mutex;
  std::condition_variable some;
  std::deque<endpoint> waiting;

  /// Called from progress, where an exception could not be caught. A peer for which there is no
  /// memory gives up by itself.
  void add(const message& knock) noexcept {
    try {
      endpoint came = knock.peer();
      const std::lock_guard guard(mutex);
      const bool is_known = std::ranges::any_of(
          waiting, [&](const endpoint& each) { return each.id() == came.id(); });
      if (is_known) return;
      if (waiting.size() >= most_strangers) return turn_away(came);
      waiting.push_back(std::move(came));
      some.notify_one();
    } catch (const std::bad_alloc&) {
    }
  }
  std::optional<endpoint> take(std::chrono::nanoseconds limit) {
    std::unique_lock guard(mutex);
    if (!some.wait_for(guard, limit, [this] { return !waiting.empty(); })) return std::nullopt;
    std::optional<endpoint> first(std::move(waiting.front()));
    waiting.pop_front();
    return first;
  }
};

pipe_door::pipe_door(worker& driven, const socket_address& place) : driven_(driven) {
  if (!place.empty()) {
    listener_options awaited;
    awaited.manual_accept = true;
    listening_.emplace(driven, place, std::move(awaited));
    return;
  }
  knocks_ = std::make_shared<knocks>();
  driven.on_message(pipe_knock_number,
                    [heard = knocks_](const message& knock) { heard->add(knock); });
}

pipe_door::~pipe_door() {
  if (!knocks_) return;
  std::error_code closed;
  driven_.on_message(pipe_knock_number, {}, closed);
  // Each of them holds the worker.
  for (endpoint& each : knocks_->waiting) turn_away(each);
}

std::string pipe_door::address() const {
  return listening_ ? to_string(listening_->address()) : std::string();
}

std::optional<endpoint> pipe_door::wait(std::chrono::nanoseconds limit, std::error_code& ec) {
  ec.clear();
  return listening_ ? accept(limit, ec) : knocks_->take(limit);
}

std::optional<endpoint> pipe_door::accept(std::chrono::nanoseconds limit, std::error_code& ec) {
  connection_request knock = listening_->accept().wait({.timeout = limit}, ec);
  if (ec == errc::timed_out) {
    ec.clear();
    return std::nullopt;
  }
  if (ec) return std::nullopt;
  std::error_code gone;
  endpoint came(driven_, std::move(knock), {}, gone);
  if (gone) return std::nullopt;
  return came;
}

void pipe_door::turn_away(endpoint& came) noexcept {
  std::error_code gone;
  came.close(close_mode::abort, gone);
}

}  // namespace ucx::detail
