#include "connection/joint_operation.hpp"

#include <utility>

#include "base/deadline.hpp"
#include "base/if_there_is_memory.hpp"
#include "connection/endpoint_core.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

void joint_operation::reset(const char* what, operation_kind kind, std::uint64_t size) noexcept {
  what_ = what;
  kind_ = kind;
  size_ = size;
  failure_.clear();
  failed_.clear();
  ucx_status_.reset();
  starting_ = true;
}

void joint_operation::begin(worker_core& worker, std::shared_ptr<endpoint_core> endpoint,
                            clock::time_point deadline, const char* what, operation_kind kind,
                            std::uint64_t size) {
  reset(what, kind, size);
  start(worker, std::move(endpoint), deadline);
}

void joint_operation::begin(std::shared_ptr<worker_core> worker, clock::time_point deadline,
                            const char* what, operation_kind kind, std::uint64_t size) {
  reset(what, kind, size);
  start(std::move(worker), deadline);
}

void joint_operation::note_failure(std::error_code why, std::string what,
                                   std::optional<int> ucx_status) {
  if (failure_) return;
  failure_ = why;
  ucx_status_ = ucx_status;
  failed_ = std::move(what);
}

std::string joint_operation::describe() const {
  return failed_.empty() ? what_ : std::string(what_).append(": ").append(failed_);
}

void joint_operation::member_ended(operation& member, std::error_code outcome) noexcept {
  if (outcome) {
    note_failure(outcome, if_there_is_memory([&] { return member.describe(); }),
                 member.ucx_status());
  }
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
