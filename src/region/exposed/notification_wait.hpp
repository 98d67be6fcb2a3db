// An owner's wait for a peer's notification.
#pragma once

#include <memory>
#include <string>
#include <system_error>

#include "base/clock.hpp"
#include "base/intrusive_list.hpp"
#include "region/exposed/notification_queue.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

/// Belongs to the worker that its owner named; the notification may come over any other.
class notification_wait final : public operation, public list_hook<notification_tag> {
 public:
  void begin(std::shared_ptr<worker_core> worker, std::shared_ptr<notification_queue> queue,
             notification& into, clock::time_point deadline);

  /// Ends it, with `why` or with what was said. Under its worker's lock, while it is no queue's.
  void served(const notification& said, std::error_code why) noexcept;
  /// Like served(), but in a round of the wait's worker, or when the wait is given up before that.
  /// The queue calls this from any thread, under the queue's lock. The wait can not end before that
  /// lock is free, so its worker still exists.
  void serve_later(const notification& said, std::error_code why) noexcept;

  void give_up(errc why) noexcept override;
  void connection_failed(std::error_code) noexcept override {}  // it has none
  std::string describe() const override { return "wait for a notification"; }
  request_attributes attributes() const override { return {.kind = operation_kind::wait_notify}; }

 protected:
  void recycle() noexcept override;

 private:
  class outcome;
  std::shared_ptr<outcome> outcome_;  // stays for the next wait, unless it is on its way
  std::shared_ptr<notification_queue> queue_;
  notification* into_ = nullptr;
};

}  // namespace ucx::detail
