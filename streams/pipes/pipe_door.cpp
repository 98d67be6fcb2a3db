#include "pipes/pipe_door.hpp"

#include <algorithm>
#include <deque>
#include <mutex>
#include <new>
#include <system_error>
#include <utility>

#include "pipes/pipe_introduction.hpp"
#include "ucx/error.hpp"
#include "ucx/listener.hpp"
#include "ucx/message.hpp"
#include "ucx/request_source.hpp"

namespace ucx::detail {

/// Those who came, and were not looked at yet.
struct pipe_door::knocks {
  std::mutex mutex;
  std::deque<endpoint> waiting;
  request_source somebody;

  // Both are called from progress, where an exception could not be caught. A peer for which there
  // is no memory gives up by itself.

  /// Somebody said that it is there.
  void hear(const message& knock) noexcept {
    try {
      add(knock.peer());
    } catch (const std::bad_alloc&) {
    }
  }
  void accept(const worker& driven, connection_request knock) noexcept {
    try {
      std::error_code gone;
      endpoint came(driven, std::move(knock), {}, gone);
      if (!gone) add(std::move(came));
    } catch (const std::bad_alloc&) {
    }
  }
  void add(endpoint came) {
    const std::lock_guard guard(mutex);
    const bool is_known =
        std::ranges::any_of(waiting, [&](const endpoint& each) { return each.id() == came.id(); });
    if (is_known) return;
    if (waiting.size() >= most_strangers) return turn_away(came);
    waiting.push_back(std::move(came));
    somebody.complete();
  }
};

pipe_door::pipe_door(worker& driven, const socket_address& place, const meeting_keys& keys)
    : driven_(driven), knocks_(std::make_shared<knocks>()) {
  if (!place.empty()) {
    listener_options deciding;
    deciding.on_request = [heard = knocks_, &driven](connection_request knock) {
      heard->accept(driven, std::move(knock));
    };
    listening_.emplace(keys.listen(driven, place, std::move(deciding)));
    return;
  }
  driven.on_message(pipe_knock_number,
                    [heard = knocks_](const message& knock) { heard->hear(knock); });
}

pipe_door::~pipe_door() {
  if (listening_) {
    listening_.reset();
  } else {
    std::error_code closed;
    driven_.on_message(pipe_knock_number, {}, closed);
  }
  // Each of them holds the worker.
  for (endpoint& each : knocks_->waiting) turn_away(each);
}

std::string pipe_door::address() const {
  return listening_ ? to_string(listening_->address()) : std::string();
}

std::optional<endpoint> pipe_door::take() {
  const std::lock_guard guard(knocks_->mutex);
  if (knocks_->waiting.empty()) return std::nullopt;
  std::optional<endpoint> first(std::move(knocks_->waiting.front()));
  knocks_->waiting.pop_front();
  return first;
}

pipe_request& pipe_door::knock() {
  if (!knock_.done()) return knock_;
  const std::lock_guard guard(knocks_->mutex);
  if (!knocks_->waiting.empty()) return knock_;
  request_source_options options;
  options.timeout = pipe_patience;
  knocks_->somebody = request_source(driven_, std::move(options));
  knock_ = knocks_->somebody.start();
  return knock_;
}

void pipe_door::turn_away(endpoint& came) noexcept {
  std::error_code gone;
  came.close(close_mode::abort, gone);
}

}  // namespace ucx::detail
