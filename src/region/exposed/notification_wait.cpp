#include "region/exposed/notification_wait.hpp"

#include <utility>

#include "base/inbox_task.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

/// The outcome of a wait, on its way to the wait's worker.
class notification_wait::outcome final : public inbox_task {
 public:
  notification_wait* of = nullptr;  // under the worker's lock; null: the wait is over
  notification said;                // these two under the queue's
  std::error_code why;

  void run(worker_core&) override {
    if (of != nullptr) of->give_up(errc::canceled);  // which finds that it was served
  }
};

void notification_wait::begin(std::shared_ptr<worker_core> worker,
                              std::shared_ptr<notification_queue> queue, notification& into,
                              clock::time_point deadline) {
  if (outcome_.use_count() != 1) outcome_ = std::make_shared<outcome>();
  outcome_->of = this;
  queue_ = std::move(queue);
  into_ = &into;
  start(std::move(worker), deadline);
  queue_->add(*this);
}

void notification_wait::served(const notification& said, std::error_code why) noexcept {
  if (!why) *into_ = said;
  complete(why);
}

void notification_wait::serve_later(const notification& said, std::error_code why) noexcept {
  outcome_->said = said;
  outcome_->why = why;
  worker().hand_over(outcome_);
}

void notification_wait::give_up(errc why) noexcept {
  if (done()) return;
  if (queue_->remove(*this)) return complete(make_error_code(why));
  served(outcome_->said, outcome_->why);  // who served it has left the queue
}

void notification_wait::recycle() noexcept {
  outcome_->of = nullptr;
  queue_.reset();
  worker().pool_of<notification_wait>().give_back(this);
}

}  // namespace ucx::detail
