#include "worker/worker_set.hpp"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <utility>

namespace ucx::detail {
namespace {

/// How long it rests where some worker can not wake it: another thread drives it.
constexpr std::chrono::microseconds short_rest{500};

}  // namespace

worker_set::~worker_set() {
  if (events_ >= 0) ::close(events_);
}

void worker_set::add(std::shared_ptr<worker_core> worker) {
  const auto same = [&](const member& each) { return each.worker == worker; };
  if (std::any_of(members_.begin(), members_.end(), same)) return;
  members_.emplace_back(std::move(worker));
  const int fd = members_.back().worker->ucx().event_fd();
  if (events_ < 0) events_ = ::epoll_create1(EPOLL_CLOEXEC);
  ::epoll_event wanted = {};
  wanted.events = EPOLLIN;
  // A set that could not be told of a worker does not sleep, below.
  if (fd < 0 || events_ < 0 || ::epoll_ctl(events_, EPOLL_CTL_ADD, fd, &wanted) != 0) {
    if (events_ >= 0) ::close(std::exchange(events_, -2));
    events_ = -2;
  }
}

void worker_set::look() noexcept {
  for (member& each : members_) each.seen = each.worker->wakes();
}

bool worker_set::progress() {
  bool active = false;
  for (member& each : members_) {
    each.driven_here = !each.worker->driven_elsewhere() && each.leader.take();
    if (!each.driven_here) continue;
    each.worker->lock().let_others_in();
    try {
      active = each.worker->round() || active;
    } catch (const std::bad_alloc&) {  // its next round does what is left, and the others go on
      each.worker->api().relax();
    }
  }
  if (active) idle_.begin_again();
  return active;
}

bool worker_set::can_sleep() const noexcept {
  return events_ >= 0 && std::all_of(members_.begin(), members_.end(),
                                     [](const member& each) { return each.driven_here; });
}

void worker_set::rest(clock::time_point until) {
  if (members_.empty()) return;
  ucp_api& api = members_.front().worker->api();
  if (!idle_.time_to_sleep(api)) return;
  if (can_sleep()) return sleep(until);
  const clock::time_point now = api.now();
  if (until <= now) return;
  api.wait_readable(-1, -1, std::min<std::chrono::nanoseconds>(short_rest, until - now));
}

void worker_set::sleep(clock::time_point until) {
  ucp_api& api = members_.front().worker->api();
  bool quiet = true;
  std::chrono::nanoseconds limit = std::chrono::nanoseconds::max();
  for (member& each : members_) {
    quiet = each.worker->prepare_to_sleep(each.seen) && quiet;
    limit = std::min(limit, each.worker->until_next_deadline());
  }
  const clock::time_point now = api.now();
  if (quiet && until > now) {
    api.wait_readable(events_, -1, std::min<std::chrono::nanoseconds>(limit, until - now));
  }
  for (member& each : members_) each.worker->slept();
}

}  // namespace ucx::detail
