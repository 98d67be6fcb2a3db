#include "store/store_writing.hpp"

#include <new>
#include <utility>

#include "store/commit_job.hpp"
#include "store/store_core.hpp"
#include "store/store_region.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

using lane = store_disk::lane;

bool store_writing::write_later(disk_queue::work job) {
  const std::shared_ptr<disk_queue> disk = store_.disk().queue(lane::writing);
  // Bounded by the windows of the writers.
  return disk && disk->start_always(std::move(job));
}

void store_writing::commit(const std::shared_ptr<store_region>& region, bool durable,
                           committed answer) {
  store_place& place = region->place();
  if (!store_.is_open() || place.is_lost) return answer(errc::no_such_name, {});
  const std::shared_ptr<store_file> file = region->stored();
  if (!place.is_written || !file) return answer(errc::permission_denied, {});
  if (place.is_committing) return answer(errc::busy, {});
  commit_job job{.file = file,
                 .spooled = place.spooled,
                 .path = place.path,
                 .exclusive = place.exclusive,
                 .durable = durable || store_.options().sync_on_commit,
                 .directory = store_.directory(),
                 .quota = store_.quota(),
                 .account = region->account(),
                 .by = store_.disk().queue(lane::writing)};
  const auto end = [kept = std::weak_ptr(region), answer](std::error_code ec,
                                                          const commit_job::outcome& made) {
    if (const std::shared_ptr<store_region> of = kept.lock()) {
      of->place().is_committing = false;
      if (made.ended) of->place().spooled.clear();
      of->place().is_lost = made.ended && !made.named;
    }
    answer(ec ? ec : made.why, made.facts);
  };
  // Before it is asked, which may be answered at once.
  place.is_committing = true;
  try {
    // Behind the writes, which may not all have been waited for. One of each writer waits at most.
    store_.disk().ask<commit_job::outcome>(lane::writing, std::move(job), end, true);
  } catch (const std::bad_alloc&) {
    place.is_committing = false;
    throw;
  }
}

void store_writing::resize(const std::shared_ptr<store_region>& region, std::uint64_t size,
                           done answer) {
  const store_place& place = region->place();
  const std::shared_ptr<store_file> file = region->stored();
  std::error_code refused;
  if (!store_.is_open() || place.is_lost) {
    refused = errc::no_such_name;
  } else if (!place.is_written || !file) {
    refused = errc::permission_denied;
  } else if (size > store_.admission().largest_file()) {
    refused = errc::no_space;
  } else if (place.is_committing) {
    refused = errc::busy;
  } else {
    refused = region->account()->begin_resize(size);
  }
  if (refused) return answer(refused);
  struct nothing {};
  const std::shared_ptr<file_account> account = region->account();
  bool asked = false;
  try {
    asked = store_.disk().ask<nothing>(
        lane::writing,
        [file, size, account]() -> result<nothing> {
          const std::error_code ec = file->resize(size);
          account->resized(*file);
          if (ec) return failure{ec};
          return nothing();
        },
        [answer](std::error_code ec, nothing) { answer(ec); });
  } catch (const std::bad_alloc&) {
    account->resized(*file);
    throw;
  }
  if (!asked) account->resized(*file);
}

}  // namespace ucx::detail
