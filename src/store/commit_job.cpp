#include "store/commit_job.hpp"

#include <new>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {

commit_job::outcome commit_job::operator()() const {
  outcome made = give_name();
  if (made.why) return made;
  try {  // what was done does not depend on what is told of it
    if (const auto facts = directory->stat(path)) made.facts = *facts;
  } catch (const std::bad_alloc&) {
    if (const auto facts = file->facts()) made.facts = *facts;
  }
  return made;
}

commit_job::outcome commit_job::give_name(last_parent* last) const {
  outcome made;
  std::error_code& ec = made.why;
  try {
    if (!spooled.empty()) file->give_back_room();
    if (durable) ec = file->sync();
    // Somebody else may publish the directory by now.
    if (!spooled.empty() && !ec && by && by->is_left_behind()) ec = errc::revoked;
    if (!spooled.empty() && !ec) {
      result<replaced_file> replaced = directory->give_name(spooled, path, exclusive, last);
      made.named = static_cast<bool>(replaced);
      if (replaced) {
        quota->refund(replaced->facts.size);
        free_later(std::move(replaced->kept));
      } else {
        ec = replaced.why().code;
      }
    }
    if (durable && !ec) ec = directory->sync_name(path);
  } catch (const std::bad_alloc&) {  // whatever was done before counts
    ec = errc::no_memory;
  }
  made.ended = !spooled.empty();
  if (made.ended && !made.named) {
    directory->discard(spooled);
    account->abandon();
  }
  return made;
}

/// Whatever is written next finds the room; where it can not be later it is now.
void commit_job::free_later(owned_descriptor replaced) const noexcept {
  if (!replaced || !by) return;
  try {
    const auto held = std::make_shared<owned_descriptor>(std::move(replaced));
    by->start_next([held] {
      *held = owned_descriptor();
      return disk_queue::answer();
    });
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace ucx::detail
