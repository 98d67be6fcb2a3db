// Tells what becomes of a connection: the user's handlers, its observer, and its wards.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "connection/connection_observer.hpp"
#include "ucx/connection_report.hpp"
#include "worker/worker_lock.hpp"

namespace ucx::detail {

class connection_messages;
class endpoint_core;

/// Each is told once, behind the lock and behind UCX's callbacks; where memory is short, in fewer
/// words, and later. A part of the connection; everything happens under the worker's lock, unless
/// it says otherwise.
class endpoint_observers {
 public:
  endpoint_observers(endpoint_core& connection, connection_messages& messages,
                     connection_events&& handlers) noexcept;
  endpoint_observers(const endpoint_observers&) = delete;
  endpoint_observers& operator=(const endpoint_observers&) = delete;

  /// Sets the user's handlers, of which those are called that would have been. Takes the lock.
  void arm(connection_events&& handlers);
  /// The user's handlers, those of messages too, are not called any more, and may be gone. Takes
  /// the lock, and waits without it for one that runs.
  void disarm() noexcept;
  /// As `disarm()`, but they are destroyed behind the lock, which the caller holds; where there is
  /// no memory for that, when the connection is left.
  void drop_handlers() noexcept;
  /// The connection is left: drops what is there still.
  void clear() noexcept { handlers_ = {}; }

  /// Sets the observer, which is told of events from here on.
  void set_observer(std::weak_ptr<connection_observer> observer) {
    observer_ = std::move(observer);
  }
  bool is_observed_by(const connection_observer& observer) const noexcept;

  /// Fails `ward` when this connection ends other than by closing it here. Takes the lock.
  void watch(const std::shared_ptr<endpoint_core>& ward);
  /// Keeps the connection that watches this one, and returns which did before.
  std::shared_ptr<endpoint_core> keep(std::shared_ptr<endpoint_core> watching) noexcept;
  const std::shared_ptr<endpoint_core>& watched_by() const noexcept { return watched_by_; }

  void established();
  /// The connection has failed, after it was established or before.
  void ended(bool was_established) noexcept;
  /// Tells of the end those that have not been told yet; when there is memory for it.
  void say_end() noexcept;
  /// Returns whether somebody is to be told of the end still, for want of memory.
  bool has_to_say_end() const noexcept { return unsaid_ != 0; }
  /// Returns whether its observer has not been told yet what has become of it.
  bool is_untold() const noexcept { return untold_ > 0 || unsaid_ != 0; }

 private:
  enum class event { established, refused, closed };
  void queue_tell(event what);
  void tell(event what);
  void tell_observer(event what);
  void not_told(event what) noexcept;
  void fail_wards();
  template <class Handler, class Call>
  void call(std::unique_lock<worker_lock>& guard, Handler& handler, Call call);

  endpoint_core& connection_;
  connection_messages& messages_;
  connection_events handlers_;
  std::weak_ptr<connection_observer> observer_;
  std::vector<std::weak_ptr<endpoint_core>> wards_;
  std::shared_ptr<endpoint_core> watched_by_;
  int telling_ = 0;      // users' handlers that run
  int untold_ = 0;       // of what the observer is to be told
  unsigned unsaid_ = 0;  // of the end: bits of `say_end`
};

}  // namespace ucx::detail
