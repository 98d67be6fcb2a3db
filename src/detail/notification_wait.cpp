#include "detail/notification_wait.hpp"

#include <utility>

#include "detail/deadline.hpp"
#include "detail/operation_pools.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

void notification_wait::begin(std::shared_ptr<worker_core> worker,
                              std::shared_ptr<notification_queue> queue, notification& into,
                              clock::time_point deadline) {
  life_ = std::make_shared<notification_wait*>(this);
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
  worker().post_work([life = life_, said] {
    if (*life != nullptr) (*life)->served(said);
  });
}

void notification_wait::refuse_later(errc why) {
  worker().post_work([life = life_, why] {
    if (*life != nullptr) (*life)->refused(why);
  });
}

void notification_wait::give_up(errc why) noexcept {
  if (done()) return;
  if (queue_->remove(*this)) return complete(make_error_code(why));
  // It has been served, and will end in a moment.
  move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
}

void notification_wait::recycle() noexcept {
  *std::exchange(life_, nullptr) = nullptr;
  queue_.reset();
  worker().pools().waits.give_back(this);
}

}  // namespace ucx::detail
