// The handlers of active messages, by number.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ucx/completion_handler.hpp"
#include "worker/worker_lock.hpp"

namespace ucx {
class message;
}

namespace ucx::detail {

struct arrived_message;
class handler_queue;
class worker_core;

/// Which of the program's functions takes the messages of a number. One runs at a time
/// (`handler_queue`), and may be replaced meanwhile. Under the worker's lock.
class active_handlers {
 public:
  using handler = move_only_handler<message>;

  explicit active_handlers(worker_core& worker) noexcept : worker_(worker) {}
  active_handlers(const active_handlers&) = delete;
  active_handlers& operator=(const active_handlers&) = delete;

  /// Returns whether `id` is of `owner`, which is empty for plain numbers. The first to ask for a
  /// number has its upper half from then on.
  bool claim(std::uint64_t id, std::string_view owner);
  /// Sets `function`, or none, and gives back the handler that it had, which is not called again,
  /// but may be running. Changes nothing if it throws.
  void exchange(std::uint64_t id, std::shared_ptr<handler>& function);
  /// The worker ends: none is called any more.
  void clear() noexcept {
    last_found_ = nullptr;
    all_.clear();
  }
  bool is_running(const handler& asked) const noexcept { return running_ == &asked; }
  bool has(std::uint64_t id) noexcept { return find(id) != nullptr; }
  /// Calls the handler that the message's number has now, on behalf of `queue`, and reports what it
  /// throws. `kept` is the worker, if the caller has it. REQUIRES: `guard` is the only hold of this
  /// thread on the worker's lock, which is free meanwhile.
  void run(arrived_message& active, handler_queue& queue, std::unique_lock<worker_lock>& guard,
           const std::shared_ptr<worker_core>& kept) noexcept;

 private:
  handler* find(std::uint64_t id) noexcept;

  worker_core& worker_;
  std::unordered_map<std::uint64_t, std::shared_ptr<handler>> all_;
  std::unordered_map<std::uint32_t, std::string> owners_;  // by the upper halves of their numbers
  std::uint64_t last_id_ = 0;      // of the handler that was asked for last,
  handler* last_found_ = nullptr;  // as long as it is in the table
  const handler* running_ = nullptr;
  std::shared_ptr<handler> retired_;  // it, where another took its place
};

}  // namespace ucx::detail
