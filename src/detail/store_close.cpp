// The end of what a client has open of a store, and of the store: nobody is told anything any more,
// and a disk that hangs is left behind.
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "detail/core_access.hpp"
#include "detail/store_core.hpp"
#include "detail/store_host.hpp"
#include "detail/worker_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

void store_core::discard(const std::string& spooled) noexcept {
  try {
    const std::shared_ptr<disk_queue> disk = queue(lane::quick);
    if (!disk) return;  // swept by who opens it next
    disk->start_always([directory = directory_, spooled] {
      directory->discard(spooled);
      return disk_queue::answer();
    });
  } catch (const std::bad_alloc&) {  // likewise
  }
}

void store_core::forget(const store_place& place) noexcept {
  --open_;
  --*open_of_all_;
  if (!place.is_written) return;
  --writers_;
  written_.erase(place.path);
}

/// A name is free again when nothing that was written under it is on its way to the disk; returns
/// false where that is so already.
bool store_core::forget_behind_writes(const store_place& place) noexcept {
  try {
    const std::shared_ptr<disk_queue> disk = queue(lane::writing);
    disk_queue::answer ending = [weak = weak_from_this(), place] {
      if (const std::shared_ptr<store_core> self = weak.lock()) self->forget(place);
    };
    return disk && disk->start_always([ending = std::move(ending)] { return ending; });
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void store_core::let_go(store_region& region) noexcept {
  if (regions_.erase(region.id()) == 0) return;
  const store_place& place = region.place();
  if (!place.spooled.empty() && !place.is_committing) {
    discard(place.spooled);
    region.account()->abandon();
  }
  const bool waits = place.is_committing || region.account()->is_written();
  if (!place.is_written || !waits || !forget_behind_writes(place)) forget(place);
  region.close();
}

void store_core::close(clock::time_point until) noexcept {
  if (begin_close(until)) {
    end_close(std::chrono::steady_clock::now() + disk_thread::longest_farewell);
  }
}

bool store_core::begin_close(clock::time_point until) noexcept {
  if (closed_.exchange(true, std::memory_order_acq_rel)) return false;
  const std::shared_ptr<store_host> server = server_.lock();
  if (!server) return false;
  server->withdraw(*this);
  std::vector<std::shared_ptr<store_region>> open;
  {
    const std::lock_guard guard(server->home()->lock());
    for (const auto& [id, each] : regions_) {
      if (auto region = each.lock()) open.push_back(std::move(region));
    }
  }
  for (const std::shared_ptr<store_region>& each : open) {
    server->tell_withdrawn(each->id(), name_of(each->place().path));
    each->close(until);
  }
  // From here on nobody makes another thread.
  std::optional<disk_thread>& quick = threads_[static_cast<std::size_t>(lane::quick)];
  for (const std::shared_ptr<store_region>& each : open) {
    if (!quick) continue;
    try {
      std::string spooled;
      {
        const std::lock_guard guard(server->home()->lock());
        if (!each->place().is_committing) spooled = each->place().spooled;
      }
      if (spooled.empty()) continue;
      quick->queue()->start_always([directory = directory_, spooled = std::move(spooled)] {
        directory->discard(spooled);
        return disk_queue::answer();
      });
    } catch (const std::bad_alloc&) {  // swept by who opens it next
    }
  }
  for (std::optional<disk_thread>& each : threads_) {
    if (each) each->begin_stop();
  }
  return true;
}

void store_core::end_close(std::chrono::steady_clock::time_point farewell) noexcept {
  const std::shared_ptr<store_host> server = server_.lock();
  if (!server) return;
  for (std::optional<disk_thread>& each : threads_) {
    if (each) each->stop(farewell);
  }
  memory_.reset();  // nothing writes there any more
  // Who publishes it again may do so at once, although the publication is still there.
  const std::lock_guard guard(server->home()->lock());
  directory_.reset();
  // Behind what was answered; the disk says nothing more.
  server->home()->post_work([left = std::move(questions_)] {
    for (const auto& [number, end] : std::exchange(*left, {})) end(errc::revoked);
  });
}

}  // namespace ucx::detail
