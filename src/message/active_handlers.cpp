#include "message/active_handlers.hpp"

#include <exception>
#include <utility>

#include "connection/endpoint_core.hpp"
#include "message/arrived_message.hpp"
#include "message/message_exchange.hpp"
#include "message/message_link.hpp"
#include "ucx/error.hpp"
#include "wire/message_number.hpp"
#include "worker/core_access.hpp"
#include "worker/handler_queue.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

bool active_handlers::claim(std::uint64_t id, std::string_view owner) {
  const std::uint32_t half = owner_of(id);
  return half == 0 || owners_.try_emplace(half, owner).first->second == owner;
}

void active_handlers::exchange(std::uint64_t id, std::shared_ptr<handler>& function) {
  if (function) {
    all_[id].swap(function);
  } else if (const auto found = all_.find(id); found != all_.end()) {
    found->second.swap(function);
    all_.erase(found);
  }
  last_found_ = nullptr;
  if (function && is_running(*function)) retired_ = function;
}

active_handlers::handler* active_handlers::find(std::uint64_t id) noexcept {
  if (last_found_ != nullptr && last_id_ == id) return last_found_;
  const auto found = all_.find(id);
  if (found == all_.end()) return nullptr;
  last_id_ = id;
  return last_found_ = found->second.get();
}

void active_handlers::run(arrived_message& active, handler_queue& queue,
                          std::unique_lock<worker_lock>& guard,
                          const std::shared_ptr<worker_core>& kept) noexcept {
  std::shared_ptr<worker_core> worker = kept ? kept : worker_.weak_from_this().lock();
  if (worker == nullptr)
    return worker_.messages().arrived().discard(active,
                                                errc::message_refused);  // which is about to end
  handler* const called = find(active.said.tag);
  if (called == nullptr) {
    if (active.from != nullptr) {
      active.from->messages().incoming().refuse(active.said,
                                                make_error_code(errc::no_such_handler));
    }
    active.owner = arrived_message::whose::taken;
    return worker_.messages().arrived().discard(active, errc::no_such_handler);
  }
  running_ = called;
  guard.unlock();
  std::exception_ptr thrown;
  try {
    (*called)(core_access::make_message(std::move(worker), active));
  } catch (...) {
    thrown = std::current_exception();
  }
  guard.lock();
  // Only now, and not under the lock: what it holds is the user's. Meanwhile another handler may
  // come to be where it was, and be replaced.
  const bool waited_for = retired_ != nullptr;
  while (retired_) {
    std::shared_ptr<handler> gone = std::move(retired_);
    guard.unlock();
    gone.reset();
    guard.lock();
  }
  running_ = nullptr;
  if (waited_for) worker_.wake_waiters();
  if (!thrown) return;
  // No caller waits for the function that is told of the exception.
  guard.unlock();
  queue.call_and_report([&] { std::rethrow_exception(std::exchange(thrown, nullptr)); });
  guard.lock();
}

}  // namespace ucx::detail
