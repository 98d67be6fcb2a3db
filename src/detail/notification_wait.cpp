#include "detail/notification_wait.hpp"

#include <utility>

#include "detail/deadline.hpp"
#include "detail/operation_pools.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {
namespace {

/// One reference, which goes also where the work that holds it is never done.
struct drop_reference {
  void operator()(notification_wait* wait) const noexcept { wait->release(); }
};
using kept_wait = std::unique_ptr<notification_wait, drop_reference>;

}  // namespace

void notification_wait::begin(std::shared_ptr<worker_core> worker,
                              std::shared_ptr<notification_queue> queue, notification& into,
                              clock::time_point deadline) {
  queue_ = std::move(queue);
  into_ = &into;
  start(std::move(worker), deadline);
  const std::shared_ptr<notification_queue> kept = queue_;
  kept->add(*this);
}

void notification_wait::served(const notification& said) {
  *into_ = said;
  complete({});
}

void notification_wait::refused(errc why) { complete(make_error_code(why)); }

void notification_wait::serve_later(const notification& said) {
  retain();
  worker().post_work([kept = kept_wait(this), said] { kept->served(said); });
}

void notification_wait::refuse_later(errc why) {
  retain();
  worker().post_work([kept = kept_wait(this), why] { kept->refused(why); });
}

void notification_wait::give_up(errc why) noexcept {
  if (done()) return;
  if (queue_->remove(*this)) return complete(make_error_code(why));
  // It has been served, and will end in a moment.
  move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
}

void notification_wait::recycle() noexcept {
  queue_.reset();
  worker().pools().waits.give_back(this);
}

}  // namespace ucx::detail
