#include "connection/joint_operation.hpp"

#include <utility>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void joint_operation::reset(const char* what) noexcept {
  what_ = what;
  failure_.clear();
  failed_.clear();
  starting_ = true;
}

void joint_operation::begin(worker_core& worker, std::shared_ptr<endpoint_core> endpoint,
                            clock::time_point deadline, const char* what) {
  reset(what);
  start(worker, std::move(endpoint), deadline);
}

void joint_operation::begin(std::shared_ptr<worker_core> worker, clock::time_point deadline,
                            const char* what) {
  reset(what);
  start(std::move(worker), deadline);
}

void joint_operation::note_failure(std::error_code why, std::string what) {
  if (failure_) return;
  failure_ = why;
  failed_ = std::move(what);
}

std::string joint_operation::describe() const {
  return failed_.empty() ? what_ : std::string(what_).append(": ").append(failed_);
}

void joint_operation::member_ended(operation& member, std::error_code outcome) noexcept {
  if (outcome) note_failure(outcome, if_there_is_memory([&] { return member.describe(); }));
  end_if_over();
}

void joint_operation::all_started() noexcept {
  starting_ = false;
  end_if_over();
}

void joint_operation::end_if_over() noexcept {
  if (!starting_ && !done() && !has_members()) complete(failure_);
}

void joint_operation::give_up(errc why) noexcept {
  if (done()) return;
  // Its members may take their time, and have deadlines of their own.
  move_deadline(after(worker().api().now(), worker().options().heartbeat_timeout));
  give_up_members(why);
}

void joint_operation::recycle() noexcept { worker().pool_of<joint_operation>().give_back(this); }

}  // namespace ucx::detail
