#include "worker/operation.hpp"

#include <utility>

#include "worker/driven_connection.hpp"
#include "worker/operation_group.hpp"
#include "worker/stop_link.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

operation::~operation() { open_gates(); }

bool operation::is_inherited() const noexcept {
  return worker_ != nullptr && worker_->is_inherited();
}

void operation::start(worker_core& worker, std::shared_ptr<driven_connection> connection,
                      clock::time_point deadline) noexcept {
  start(worker, {.connection = std::move(connection)}, deadline);
}

void operation::start(worker_core& worker, kept_alive&& held, clock::time_point deadline) noexcept {
  connection_ = held.counted != nullptr ? held.counted : held.connection.get();
  if (held.counted != nullptr) held.counted->count_request();
  held_ = std::move(held);
  begin(worker, deadline);
}

void operation::start(std::shared_ptr<worker_core> worker, clock::time_point deadline) noexcept {
  connection_ = nullptr;
  worker_core& of = *worker;
  held_.worker = std::move(worker);
  begin(of, deadline);
}

void operation::begin(worker_core& worker, clock::time_point deadline) noexcept {
  worker_ = &worker;
  deadline_ = deadline;
  error_.clear();
  has_handler_ = false;
  is_blocking_ = false;
  references_ = 2;
  done_.store(false, std::memory_order_relaxed);
  worker.add_outstanding(*this);
}

void operation::attach(std::shared_ptr<driven_connection> connection) noexcept {
  connection_ = connection.get();
  held_.connection = std::move(connection);
}

void operation::fail(std::error_code why) noexcept {
  error_ = why;
  references_ = 1;
}

void operation::complete(std::error_code outcome) noexcept {
  if (gates_ && !claim_gates() && !outcome) outcome = errc::timed_out;
  worker_->log_end(*this, outcome);
  worker_->outstanding().remove(*this);
  error_ = outcome;
  done_.store(true, std::memory_order_release);
  if (stop_) set_stop(nullptr);
  if (gates_) open_gates();  // what runs behind them finds it done
  worker_->wake_waiters_for(*this);
  if (handler_) worker_->queue_handler(*this);
  if (operation_group* const group = std::exchange(group_, nullptr)) group->ended(*this);
  release();
}

void operation::add_gate(std::unique_ptr<stream_wait_value> shut) noexcept {
  shut->next = std::move(gates_);
  gates_ = std::move(shut);
}

void operation::set_stop(std::shared_ptr<stop_link> link) noexcept {
  if (stop_) stop_->forget();
  stop_ = std::move(link);
}

bool operation::is_guarded() const noexcept {
  return worker_ == nullptr || worker_->lock().is_mine();
}

bool operation::claim_gates() noexcept {
  bool all = true;
  for (stream_wait_value* each = gates_.get(); each != nullptr; each = each->next.get()) {
    all = each->claim() && all;
  }
  return all;
}

void operation::open_gates() noexcept {
  while (gates_) gates_ = std::move(gates_->next);
}

void operation::keep_worker() noexcept {
  // An operation that may get its connection meanwhile has the worker. A counted one gets the share
  // that the connection's handle leaves.
  if (held_.worker || held_.counted != nullptr || !held_.connection) return;
  if (!held_.connection->keeps_worker()) held_.worker = worker_->shared_from_this();
}

operation::kept_alive operation::let_go() noexcept {
  if (driven_connection* const counted = std::exchange(held_.counted, nullptr)) {
    held_.connection = counted->forget_request();
  }
  return std::move(held_);
}

void operation::drop() noexcept {
  if (worker_ == nullptr) return release();  // it never started
  kept_alive held;                           // until the lock is free again
  const std::lock_guard guard(worker_->lock());
  is_left_to_call_ = waits_ > 0;
  if (is_left_to_call_) return;
  held = let_go();
  if (--references_ == 0) retire();
}

void operation::begin_wait() noexcept {
  if (!worker_->has_several_threads()) {
    ++waits_;
    return;
  }
  const std::lock_guard guard(worker_->lock());
  ++waits_;
}

void operation::end_wait() noexcept {
  bool is_left = false;
  if (!worker_->has_several_threads()) {
    is_left = --waits_ == 0 && is_left_to_call_;
  } else {
    const std::lock_guard guard(worker_->lock());
    is_left = --waits_ == 0 && is_left_to_call_;
  }
  if (is_left) drop();
}

/// REQUIRES: no reference is left.
void operation::retire() noexcept {
  handler_.reset();
  recycle();
}

void operation::move_deadline(clock::time_point deadline) noexcept {
  deadline_ = deadline;
  worker_->tick_by(deadline);
}

void operation::set_handler(completion_handler handler) {
  if (!handler) return;
  worker_->expect_handler();
  set_expected_handler(std::move(handler));
}

void operation::set_expected_handler(completion_handler handler) noexcept {
  handler_ = std::move(handler);
  if (done()) worker_->queue_handler(*this);
}

void operation::run_handler() {
  completion_handler handler = std::exchange(handler_, completion_handler());
  if (handler) handler(error_);
}

bool operation::rebind(std::span<std::byte>) noexcept { return false; }

std::optional<int> operation::ucx_status() const noexcept {
  if (!error()) return {};
  const std::optional<int> lost =
      connection_ != nullptr ? connection_->ucx_status_of(error_) : std::optional<int>();
  return lost ? lost : own_ucx_status();
}

std::string failure_text(const operation& failed) {
  std::string text = failed.describe();
  if (const driven_connection* const connection = failed.connection()) {
    const std::string words = connection->words();
    if (!words.empty()) text += " (" + words + ")";
  }
  return text;
}

}  // namespace ucx::detail
