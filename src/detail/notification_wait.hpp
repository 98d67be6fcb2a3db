// An owner's wait for a peer's notification.
#pragma once

#include <memory>
#include <string>

#include "detail/intrusive_list.hpp"
#include "detail/notification_queue.hpp"
#include "detail/operation.hpp"

namespace ucx::detail {

/// Belongs to the worker that its owner named; the notification may come over any other.
class notification_wait final : public operation, public list_hook<notification_tag> {
 public:
  void begin(std::shared_ptr<worker_core> worker, std::shared_ptr<notification_queue> queue,
             notification& into, clock::time_point deadline);

  // Under the worker's lock:
  void served(const notification& said);
  void refused(errc why);
  // From anywhere, once the queue has forgotten it: the same, soon.
  void serve_later(const notification& said);
  void refuse_later(errc why);

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code) noexcept override {}  // it has none
  std::string describe() const override { return "wait for a notification"; }

 protected:
  void recycle() noexcept override;

 private:
  std::shared_ptr<notification_wait*> life_;  // null there, when this one's is over
  std::shared_ptr<notification_queue> queue_;
  notification* into_ = nullptr;
};

}  // namespace ucx::detail
