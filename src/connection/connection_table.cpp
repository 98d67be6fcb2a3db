#include "connection/connection_table.hpp"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "connection/connection_observer.hpp"
#include "connection/control_queue.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/flush_operation.hpp"
#include "connection/joint_operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

connection_table::connection_table(worker_core& worker, maker_of_messages messages)
    : worker_(worker),
      make_messages_(messages),
      turns_(std::make_unique<control_queue>(worker)),
      served_(worker, *this),
      deferred_(worker) {}

connection_table::~connection_table() = default;

void connection_table::make_room() {
  const std::size_t needed = all_.size() + 1;
  for (auto* const list : {&ticking_, &all_}) {  // a tick allocates nothing, either
    if (list->capacity() < needed) list->reserve(std::max(2 * list->capacity(), needed));
  }
}

void connection_table::remove(endpoint_core& gone) noexcept {
  turns_->drop(&gone);
  std::erase(all_, &gone);
  std::replace(ticking_.begin(), ticking_.end(), &gone, static_cast<endpoint_core*>(nullptr));
  unname(gone);
}

void connection_table::name(endpoint_core& named) {
  if (!worker_.context().is_of_ucx()) {
    by_handle_[named.handle()] = &named;
    return;
  }
  last_found_ = nullptr;
  by_session_[named.session().number_here()] = &named;
}

void connection_table::unname(endpoint_core& named) noexcept {
  std::erase_if(by_handle_, [&](const auto& each) { return each.second == &named; });
  last_found_ = nullptr;
  const auto found = by_session_.find(named.session().number_here());
  if (found != by_session_.end() && found->second == &named) by_session_.erase(found);
}

bool connection_table::note_lost_port(std::uint64_t socket) {
  if (std::find(lost_ports_.begin(), lost_ports_.end(), socket) != lost_ports_.end()) return false;
  lost_ports_.push_back(socket);
  return true;
}

endpoint_core* connection_table::find(std::uint64_t session) const noexcept {
  if (last_found_ != nullptr && last_session_ == session) return last_found_;
  const auto found = by_session_.find(session);
  last_session_ = session;
  return last_found_ = found == by_session_.end() ? nullptr : found->second;
}

endpoint_core* connection_table::find_over(ucp_ep_h over) const noexcept {
  const auto found = by_handle_.find(over);
  // Another one may have the address of one that was dropped.
  if (found == by_handle_.end() || found->second->handle() != over) return nullptr;
  return found->second;
}

std::vector<std::shared_ptr<endpoint_core>> connection_table::made_here() const {
  std::vector<std::shared_ptr<endpoint_core>> held;
  for (endpoint_core* each : all_) {
    auto kept = each->weak_from_this().lock();
    if (kept && !served_.has(kept)) {
      held.push_back(std::move(kept));
    }
  }
  return held;
}

std::shared_ptr<endpoint_core> connection_table::any_followed_by(
    const connection_observer& observer) const noexcept {
  for (endpoint_core* const each : all_) {
    if (each->state() == endpoint_state::closed || !each->observers().is_observed_by(observer))
      continue;
    if (auto kept = each->weak_from_this().lock()) return kept;
  }
  return nullptr;
}

std::vector<std::shared_ptr<endpoint_core>> connection_table::followed_by(
    const connection_observer& observer) const {
  std::vector<std::shared_ptr<endpoint_core>> found;
  for (endpoint_core* const each : all_) {
    if (!each->observers().is_observed_by(observer)) continue;
    if (auto kept = each->weak_from_this().lock()) found.push_back(std::move(kept));
  }
  return found;
}

bool connection_table::has_connection_to(const socket_address& peer) const noexcept {
  return std::any_of(all_.begin(), all_.end(), [&](const endpoint_core* each) {
    return each->side() == endpoint_core::role::initiator && each->peer() == peer &&
           (each->state() == endpoint_state::connecting || each->state() == endpoint_state::ready);
  });
}

bool connection_table::has_connection_to(std::uint64_t identity,
                                         const endpoint_core& but) const noexcept {
  if (identity == 0) return false;
  const std::uint64_t ours = worker_.identity();
  // A connection of a worker to itself has its other end here. Of two that cross, each of which was
  // welcomed before the other was known, the one that the smaller number began is kept.
  const bool crossing_counts =
      identity != ours && (but.side() == endpoint_core::role::acceptor || ours > identity);
  return std::any_of(all_.begin(), all_.end(), [&](const endpoint_core* each) {
    return each != &but && each->state() == endpoint_state::ready &&
           !each->session().is_leaving() && each->session().theirs().identity == identity &&
           (each->side() == but.side() || crossing_counts);
  });
}

std::size_t connection_table::active(const connection_observer* observer) const noexcept {
  const auto counts = [observer](const endpoint_core* each) {
    return each->state() == endpoint_state::ready && !each->session().is_leaving() &&
           (observer == nullptr || each->observers().is_observed_by(*observer));
  };
  return static_cast<std::size_t>(std::count_if(all_.begin(), all_.end(), counts));
}

endpoint_core* connection_table::find_nameless(ucp_ep_h handle) const noexcept {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const endpoint_core* e) {
    return e->handle() == handle && e->session().number() == 0 && !e->is_plain();
  });
  return found == all_.end() ? nullptr : *found;
}

clock::time_point connection_table::tick(clock::time_point now) {
  clock::time_point next = clock::time_point::max();
  // A copy: one that fails takes itself out of the table, and may take others with it.
  ticking_.assign(all_.begin(), all_.end());
  for (std::size_t i = 0; i < ticking_.size(); ++i) {
    if (ticking_[i] == nullptr) continue;
    try {
      next = std::min(next, ticking_[i]->tick(now));
    } catch (const std::bad_alloc&) {  // the next tick looks again
      next = now;
    }
  }
  ticking_.clear();
  return next;
}

operation* connection_table::start_flush(const connections& over, const io_options& options) {
  const clock::time_point deadline = worker_.deadline_after(options.timeout);
  joint_operation* const all = worker_.pool_of<joint_operation>().take();
  all->begin(worker_.shared_from_this(), deadline, "flush of every connection",
             operation_kind::flush);
  try {
    for (const std::shared_ptr<endpoint_core>& each : over) {
      if (each->status()) continue;  // told already
      std::unique_ptr<flush_operation> flush(worker_.pool_of<flush_operation>().take());
      flush->begin(worker_, each, nullptr, nullptr, true, deadline);
      all->adopt(*flush.release());
    }
  } catch (const std::bad_alloc&) {  // those that were started are waited for
    all->note_failure(make_error_code(errc::no_memory), {});
  }
  all->all_started();
  return all;
}

std::size_t connection_table::cancel_all(endpoint_core* connection,
                                         std::chrono::nanoseconds limit) {
  connections over;  // let go behind the lock
  {
    const std::lock_guard guard(worker_.lock());
    if (connection != nullptr) {
      connection->cancel_operations();
    } else {
      over = made_here();
      for (const std::shared_ptr<endpoint_core>& each : over) each->cancel_operations();
      worker_.outstanding().cancel(nullptr);
    }
  }
  worker_.settle();
  const auto left = [&] { return worker_.outstanding().count(connection); };
  if (limit > limit.zero() && !worker_.in_handler()) {
    worker_.wait_until(after(worker_.api().now(), limit), [&] { return left() == 0; });
  }
  const std::lock_guard guard(worker_.lock());
  return left();
}

}  // namespace ucx::detail
