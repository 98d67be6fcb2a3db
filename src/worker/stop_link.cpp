#include "worker/stop_link.hpp"

#include "ucx/error.hpp"
#include "worker/operation.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

stop_link::stop_link(operation& ended) noexcept : worker_(ended.worker()), operation_(&ended) {}

void stop_link::connect(operation& ended, const std::stop_token& stop) {
  const auto made = std::make_shared<stop_link>(ended);
  ended.set_stop(made);
  made->callback_.emplace(stop, requested{*made});  // which may call it at once
}

/// Waits for a callback that runs on another thread: that takes no lock of the worker's.
void stop_link::forget() noexcept {
  operation_ = nullptr;
  callback_.reset();
}

void stop_link::requested::operator()() const noexcept {
  link.worker_.hand_over(link.shared_from_this());
}

void stop_link::run(worker_core&) {
  if (operation_ != nullptr && !operation_->done()) operation_->give_up(errc::canceled);
}

}  // namespace ucx::detail
