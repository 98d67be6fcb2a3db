#include "store/commit_job.hpp"

#include <new>
#include <utility>

#include "ucx/error.hpp"

namespace ucx::detail {

commit_job::outcome commit_job::operator()(std::error_code& ec) const {
  outcome made = give_name(ec);
  std::error_code none;  // what was done does not depend on what is told of it
  try {
    if (!ec) made.facts = directory->stat(path, none);
  } catch (const std::bad_alloc&) {
    if (const auto facts = file->facts()) made.facts = *facts;
  }
  return made;
}

commit_job::outcome commit_job::give_name(std::error_code& ec, last_parent* last) const {
  outcome made;
  try {
    if (!spooled.empty()) file->give_back_room();
    if (durable) ec = file->sync();
    // Somebody else may publish the directory by now.
    if (!spooled.empty() && !ec && by && by->is_left_behind()) ec = errc::revoked;
    if (!spooled.empty() && !ec) {
      replaced_file replaced;
      made.named = directory->give_name(spooled, path, exclusive, replaced, ec, last);
      if (made.named) {
        quota->refund(replaced.facts.size);
        free_later(std::move(replaced.kept));
      }
    }
    if (durable && !ec) directory->sync_name(path, ec);
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
