// The one primitive under every asynchronous call: an operation with one completion.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "detail/intrusive_list.hpp"
#include "detail/ucp_api.hpp"
#include "ucx/completion_handler.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

class endpoint_core;
class worker_core;

struct outstanding_tag {};

/// Shared by its `request` handle and by whoever will complete it; counted, recycled by its worker.
/// Everything but `done()` and `error()` happens under the worker's lock.
class operation : public list_hook<outstanding_tag> {
 public:
  operation() noexcept = default;
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;
  virtual ~operation();

  bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  /// Returns why it failed; meaningful once done.
  std::error_code error() const noexcept { return done() ? error_ : std::error_code(); }

  void retain() noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  /// Drops a reference; the last one recycles the operation, which may end its endpoint and worker.
  void release() noexcept;

  worker_core& worker() const noexcept { return *worker_; }
  endpoint_core* endpoint() const noexcept { return endpoint_; }
  clock::time_point deadline() const noexcept { return deadline_; }

  /// Lets go of the connection that the request handle kept open; called when the handle goes. What
  /// is left of the operation then needs no keeping: a connection ends after all of UCX's
  /// callbacks.
  std::shared_ptr<endpoint_core> let_go() noexcept { return std::move(held_); }

  /// Sets what is called at completion, or queues it now when done.
  void set_handler(completion_handler handler);
  /// Queues and clears the handler; called by the worker outside of UCX's callbacks.
  void run_handler() noexcept;

  /// Ends the operation early for `why` (timed_out, canceled): at once where nothing of the
  /// caller's is in UCX's hands, else when UCX has let go, which `linger_deadline` bounds.
  virtual void give_up(errc why) noexcept = 0;
  /// The connection failed: ends the operation now, or when UCX's callbacks have come.
  virtual void connection_failed(std::error_code why) noexcept = 0;
  /// See request::rebind.
  virtual bool rebind(std::span<std::byte> into) noexcept;
  /// Returns whether only the peer's answer can end it, so that its silence counts.
  virtual bool awaits_peer() const noexcept { return false; }
  /// Says what is tried, on what: the beginning of an error text.
  virtual std::string describe() const = 0;

 protected:
  /// Starts a life: one reference for the request handle and one for whoever completes.
  void start(worker_core& worker, std::shared_ptr<endpoint_core> endpoint,
             clock::time_point deadline) noexcept;
  /// Ends it: sets the outcome, wakes waiters, queues the handler, and drops the completer's
  /// reference. Exactly once a life.
  void complete(std::error_code outcome) noexcept;
  /// For an operation that never starts: done and failed from the beginning, of no worker.
  void fail(std::error_code why) noexcept;
  /// Puts the object where its worker finds it for the next operation of its kind.
  virtual void recycle() noexcept = 0;

  void move_deadline(clock::time_point deadline) noexcept { deadline_ = deadline; }

 private:
  std::atomic<std::uint32_t> references_{0};
  std::atomic<bool> done_{true};
  std::error_code error_;
  completion_handler handler_;
  worker_core* worker_ = nullptr;
  endpoint_core* endpoint_ = nullptr;
  std::shared_ptr<endpoint_core> held_;
  clock::time_point deadline_;
};

/// Returns the one-line text of a failed operation, with the connection's own words.
std::string failure_text(const operation& failed);

}  // namespace ucx::detail
