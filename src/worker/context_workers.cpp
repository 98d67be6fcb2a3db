#include "worker/context_workers.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "base/deadline.hpp"
#include "base/idle_rounds.hpp"
#include "worker/counted_region.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void context_workers::add(std::weak_ptr<worker_core> worker) {
  const std::lock_guard guard(mutex_);
  if (walks_ == 0) {
    std::erase_if(all_, [](const std::weak_ptr<worker_core>& w) { return w.expired(); });
  }
  all_.push_back(std::move(worker));
}

void context_workers::drain(counted_region& region, clock::time_point cut_off) noexcept {
  // Outside of the lock: draining runs handlers, which may make workers or withdraw regions.
  std::vector<std::shared_ptr<worker_core>> workers;
  std::vector<std::pair<worker_core*, idle_rounds>> waiting;
  try {
    const std::lock_guard guard(mutex_);
    for (const std::weak_ptr<worker_core>& worker : all_) {
      if (auto kept = worker.lock()) workers.push_back(std::move(kept));
    }
    waiting.reserve(workers.size());
  } catch (const std::bad_alloc&) {
    return drain_one_by_one(region, cut_off);
  }
  for (const std::shared_ptr<worker_core>& worker : workers) worker->begin_drain(region);
  // All of them are given their time together, and by turns what this thread may do for them.
  const clock::time_point begin = workers.empty() ? cut_off : workers.front()->api().now();
  for (const std::shared_ptr<worker_core>& worker : workers) {
    if (!worker->in_handler()) waiting.emplace_back(worker.get(), idle_rounds());
  }
  while (!waiting.empty() && !region.idle()) {
    std::erase_if(waiting, [&](auto& each) {
      worker_core& worker = *each.first;
      const clock::time_point last = after(begin, worker.options().heartbeat_timeout);
      return worker.api().now() >= std::min(last, cut_off) || !worker.drain(region, each.second);
    });
  }
  for (const std::shared_ptr<worker_core>& worker : workers) {
    if (!region.idle()) worker->end_drain(region);
  }
}

/// Where there is no memory for a list of the workers.
void context_workers::drain_one_by_one(counted_region& region, clock::time_point cut_off) noexcept {
  for (std::size_t index = 0;; ++index) {
    std::shared_ptr<worker_core> worker;
    {
      const std::lock_guard guard(mutex_);
      if (index == 0) ++walks_;
      if (index >= all_.size()) {
        --walks_;
        return;
      }
      worker = all_[index].lock();
    }
    if (!worker) continue;
    worker->begin_drain(region);
    idle_rounds idle;
    const clock::time_point last =
        std::min(after(worker->api().now(), worker->options().heartbeat_timeout), cut_off);
    while (!worker->in_handler() && !region.idle() && worker->api().now() < last &&
           worker->drain(region, idle)) {
    }
    if (!region.idle()) worker->end_drain(region);
  }
}

}  // namespace ucx::detail
