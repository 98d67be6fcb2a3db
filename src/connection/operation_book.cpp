#include "connection/operation_book.hpp"

#include <memory>
#include <utility>

#include "base/deadline.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/flush_operation.hpp"
#include "connection/peer_question.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {
namespace {

/// So many of our questions may be on the wire of one connection; the owner refuses more than four
/// times as many.
constexpr std::size_t most_asked = 256;

}  // namespace

void operation_book::add(peer_question& started) {
  started.was_asked = false;
  if (const std::error_code unusable = connection_.status())
    return started.connection_failed(unusable);
  started.fence = fence_;
  if (queued_.empty() && may_ask(started)) {
    started.was_asked = true;
    asked_.push_back(started);
    return started.ask();
  }
  queued_.push_back(started);
}

/// Operations are asked in the order of their start, so that the first of those that wait for the
/// peer is behind the fewest fences.
bool operation_book::may_ask(const peer_question& next) const noexcept {
  if (connection_.state() != endpoint_state::ready || asked_.size() >= most_asked) return false;
  if (!asked_.empty() && asked_.front()->fence != next.fence) return false;
  const operation* const flush = any_member();
  return flush == nullptr || next.fence < flush->group_mark;
}

bool operation_book::fenced_behind_messages() const noexcept {
  const auto before = [this](const auto& list) {
    return !list.empty() && list.front()->fence != fence_;
  };
  return before(asked_) || before(queued_);
}

void operation_book::fence() {
  if (connection_.status()) return;
  ++fence_;
  if (!std::exchange(rma_since_fence_, false)) return;
  worker_core& worker = connection_.worker();
  worker.api().worker_fence(worker.handle());
  if (!connection_.speaks()) {
    if (connection_.detects_failure()) return;  // UCX's fence is all
    // On one host what is left ends by this process's own doing.
    const clock::time_point until = after(worker.api().now(), worker.options().heartbeat_timeout);
    while (connection_.ucx().transfers() > 0 && worker.api().now() < until) {
      if (worker.progress_ucx() == 0) worker.api().relax();
    }
    return;
  }
  std::unique_ptr<flush_operation> flush(worker.pool_of<flush_operation>().take());
  flush->begin(worker, connection_.shared_from_this(), nullptr, nullptr, true,
               worker.deadline_after(std::chrono::nanoseconds::zero()));
  flush->group_mark = fence_;
  adopt(*flush.release());
}

void operation_book::member_ended(operation&, std::error_code outcome) noexcept {
  if (outcome && !connection_.status()) {
    connection_.blame(errc::connection_reset, "what a fence was to wait for did not end");
  }
  connection_.owe(endpoint_core::to_send);
}

void operation_book::remove(peer_question& ended) noexcept {
  if (!static_cast<list_hook<waiting_tag>&>(ended).linked()) return;  // refused by add()
  (ended.was_asked ? asked_ : queued_).remove(ended);
  if (empty()) connection_.closing().look();
  if (ended.was_asked && !queued_.empty() && !sending_queued_ &&
      connection_.state() == endpoint_state::ready) {
    connection_.owe(endpoint_core::to_send);
    sending_queued_ = true;
  }
}

void operation_book::write_ended(std::uint64_t epoch) {
  writes_.end(epoch);
  for (flush_operation* flush = flushes_.front(); flush != nullptr;) {
    flush_operation* next = flushes_.next(*flush);
    if (writes_.settled(flush->epoch())) flush->writes_settled();
    flush = next;
  }
}

void operation_book::remove(flush_operation& ended) noexcept {
  if (static_cast<list_hook<flush_tag>&>(ended).linked()) flushes_.remove(ended);
}

void operation_book::send_queued() {
  sending_queued_ = false;
  // The last look may have been at a deadline of connecting: from here on the heart is watched.
  if (!queued_.empty()) connection_.worker().tick_soon();
  while (peer_question* next = queued_.front()) {
    if (!may_ask(*next)) return;
    queued_.remove(*next);
    next->was_asked = true;
    asked_.push_back(*next);
    next->ask();
  }
}

/// Calls `act` with each of them; it may end the one that it is called with.
template <class Action>
void operation_book::with_each(const Action& act) noexcept {
  for (auto* list : {&asked_, &queued_}) {
    for (peer_question* op = list->front(); op != nullptr;) {
      peer_question* next = list->next(*op);
      act(*op);
      op = next;
    }
  }
}

void operation_book::fail(std::error_code why) noexcept {
  with_each([why](peer_question& op) { op.connection_failed(why); });
}

void operation_book::cancel() noexcept {
  with_each([](peer_question& op) {
    if (!op.is_blocking()) op.give_up(errc::canceled);
  });
}

void operation_book::cancel_of(const remote_region_core& region) noexcept {
  with_each([&region](peer_question& op) {
    if (op.target() == &region) op.give_up(errc::canceled);
  });
}

}  // namespace ucx::detail
