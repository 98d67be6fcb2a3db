// Operations without requests: they are started together, and a group is told of each one's end.
#pragma once

#include <system_error>

#include "base/intrusive_list.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

/// Has the reference of each member's request handle. Everything happens under the worker's lock.
class operation_group {
 public:
  operation_group() noexcept = default;
  /// The members are gone, or their worker is.
  virtual ~operation_group() = default;
  operation_group(const operation_group&) = delete;
  operation_group& operator=(const operation_group&) = delete;

  /// Takes over what was just started, which may have ended already.
  void adopt(operation& started);
  /// Gives up what is in flight: much of it ends at once.
  void give_up_members(errc why) noexcept;
  /// A call that blocks waits for them: see operation.
  void set_members_blocking() noexcept;
  /// Its handle has gone: no operation is to join any more.
  void abandon() noexcept { abandoned_ = true; }
  bool is_abandoned() const noexcept { return abandoned_; }
  /// Leaves them to themselves.
  void forget_members() noexcept;
  bool has_members() const noexcept { return !members_.empty(); }
  /// Returns one of those in flight, or nothing.
  operation* any_member() const noexcept { return members_.front(); }

 protected:
  /// A member ended, maybe inside UCX's callback; the last thing done here, so it may end the
  /// group.
  virtual void member_ended(operation& member, std::error_code outcome) noexcept = 0;

 private:
  friend class operation;
  void ended(operation& member) noexcept;

  intrusive_list<operation, group_tag> members_;
  bool abandoned_ = false;
};

}  // namespace ucx::detail
