#include "ucx/request.hpp"

#include <algorithm>
#include <memory>

#include "base/deadline.hpp"
#include "base/result.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/operation.hpp"
#include "worker/worker_core.hpp"
#include "worker/worker_set.hpp"

namespace ucx {
namespace {

using time_point = detail::clock::time_point;

/// Returns the worker of a request that has not ended; nothing for one that has.
detail::worker_core* awaited(const request& each) {
  return each.done() ? nullptr : &detail::core_access::get(each)->worker();
}

/// Waits until `condition` holds, which only the end of a request can bring about.
template <class Condition>
bool wait_until(std::span<const request> requests, time_point until, Condition condition,
                std::error_code& ec) {
  ec.clear();
  if (condition()) return true;
  detail::worker_core* only = nullptr;
  detail::worker_set all;
  std::size_t workers = 0;
  for (const request& each : requests) {
    detail::worker_core* const worker = awaited(each);
    if (worker == nullptr) continue;
    if (worker->is_inherited()) ec = errc::forked_child;
    if (!ec && worker->in_handler()) ec = errc::would_deadlock;
    if (ec) return false;
    if (worker != only) ++workers;
    only = worker;
  }
  if (workers == 0) return condition();
  if (workers == 1) return only->wait_until(until, condition);
  detail::ucp_api& api = only->api();
  for (const request& each : requests) {
    if (detail::worker_core* const worker = awaited(each)) all.add(worker->shared_from_this());
  }
  for (bool has_driven = false;; has_driven = true) {
    all.look();
    if (condition()) return true;
    if (has_driven && api.now() >= until) return false;
    if (!all.progress()) all.rest(until);
  }
}

time_point in(std::span<const request> requests, std::chrono::nanoseconds limit) {
  for (const request& each : requests) {
    if (detail::worker_core* const worker = awaited(each)) {
      return detail::after(worker->api().now(), limit);
    }
  }
  return time_point::max();
}

void end_wait(std::error_code outcome, std::error_code& ec) {
  detail::end_with(outcome, ec, [outcome] {
    return outcome == errc::would_deadlock ? "waiting for requests inside a handler"
                                           : "waiting for requests";
  });
}

}  // namespace

std::optional<std::size_t> wait_any(std::span<const request> requests,
                                    std::chrono::nanoseconds limit, std::error_code& ec) {
  std::size_t found = 0;
  const auto any = [&] {
    const auto ended = std::find_if(requests.begin(), requests.end(),
                                    [](const request& each) { return each.done(); });
    found = static_cast<std::size_t>(ended - requests.begin());
    return ended != requests.end();
  };
  std::error_code outcome;
  const bool ended = !requests.empty() && wait_until(requests, in(requests, limit), any, outcome);
  end_wait(outcome, ec);
  return ended ? std::optional(found) : std::nullopt;
}

bool wait_all(std::span<const request> requests, std::chrono::nanoseconds limit,
              std::error_code& ec) {
  const auto all = [&] {
    return std::all_of(requests.begin(), requests.end(),
                       [](const request& each) { return each.done(); });
  };
  std::error_code outcome;
  const bool ended = wait_until(requests, in(requests, limit), all, outcome);
  end_wait(outcome, ec);
  return ended;
}

}  // namespace ucx
