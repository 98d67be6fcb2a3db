#include "region/remote/notify_operation.hpp"

#include <new>
#include <utility>

#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "connection/flush_operation.hpp"
#include "connection/posted_operations.hpp"
#include "region/remote/region_notify.hpp"
#include "region/remote/remote_region_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void notify_operation::begin(std::shared_ptr<remote_region_core> region,
                             std::shared_ptr<write_tracker> tracker,
                             std::shared_ptr<posted_operations> posted, std::uint64_t value,
                             clock::time_point deadline) {
  endpoint_core& connection = region->endpoint();
  worker_core& worker = connection.worker();
  // Before anything is started: it is needed where nothing can be thrown.
  std::unique_ptr<region_notify> note(worker.pool_of<region_notify>().take());
  std::unique_ptr<flush_operation> flush(worker.pool_of<flush_operation>().take());
  const bool by_ucx = tracker->has_unconfirmable();
  flush->begin(worker, connection.shared_from_this(), std::move(tracker), std::move(posted), by_ucx,
               deadline);
  note_ = note.release();
  region_ = std::move(region);
  value_ = value;
  said_ = false;
  given_up_.clear();
  failed_.clear();
  start(worker, connection.shared_from_this(), deadline);
  adopt(*flush.release());
}

void notify_operation::member_ended(operation& member, std::error_code outcome) noexcept {
  if (outcome) failed_ = if_there_is_memory([&] { return member.describe(); });
  if (!outcome && !said_ && given_up_) outcome = given_up_;
  if (outcome || said_) return complete(outcome);
  said_ = true;
  try {
    note_->begin(region_, value_, deadline());
  } catch (const std::bad_alloc&) {  // it is not started
    delete std::exchange(note_, nullptr);
    return complete(make_error_code(errc::no_memory));
  }
  adopt(*std::exchange(note_, nullptr));
}

void notify_operation::give_up(errc why) noexcept {
  if (done()) return;
  given_up_ = make_error_code(why);
  give_up_members(why);
}

std::string notify_operation::describe() const {
  std::string text =
      "notification " + std::to_string(value_) + " of the owner of " + region_->description();
  if (!failed_.empty()) text.append(": ").append(failed_);
  return text;
}

void notify_operation::recycle() noexcept {
  if (note_ != nullptr) worker().pool_of<region_notify>().give_back(std::exchange(note_, nullptr));
  region_.reset();
  worker().pool_of<notify_operation>().give_back(this);
}

}  // namespace ucx::detail
