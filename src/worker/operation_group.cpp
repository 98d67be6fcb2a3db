#include "worker/operation_group.hpp"

namespace ucx::detail {

void operation_group::adopt(operation& started) {
  started.let_go();  // the group's owner keeps the connection
  members_.push_back(started);
  if (started.done()) return ended(started);
  started.group_ = this;
}

void operation_group::ended(operation& member) noexcept {
  members_.remove(member);
  member_ended(member, member.error());
  member.release();
}

void operation_group::give_up_members(errc why) noexcept {
  for (operation* member = members_.front(); member != nullptr;) {
    operation* const next = members_.next(*member);
    if (next == nullptr) {
      member->retain();
      member->give_up(why);
      return member->release();  // the group may be gone
    }
    next->retain();
    member->give_up(why);
    // It may have taken its connection with it, and so the others.
    const bool ended = next->done();
    next->release();
    member = ended ? members_.front() : next;
  }
}

void operation_group::set_members_blocking() noexcept {
  for (operation* member = members_.front(); member != nullptr; member = members_.next(*member)) {
    member->set_blocking();
  }
}

void operation_group::forget_members() noexcept {
  while (operation* const member = members_.front()) {
    members_.remove(*member);
    member->group_ = nullptr;
    member->release();
  }
}

}  // namespace ucx::detail
