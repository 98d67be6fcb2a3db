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

#include "base/if_there_is_memory.hpp"
#include "store/store_core.hpp"
#include "store/store_host.hpp"
#include "ucx/error.hpp"
#include "worker/core_access.hpp"
#include "worker/worker_core.hpp"

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

/// Returns the first file that is open of those with higher numbers.
std::shared_ptr<store_region> store_core::next_open(std::uint64_t behind) const noexcept {
  for (auto at = regions_.upper_bound(behind); at != regions_.end(); ++at) {
    if (std::shared_ptr<store_region> region = at->second.lock()) return region;
  }
  return nullptr;
}

bool store_core::begin_close(clock::time_point until) noexcept {
  if (closed_.exchange(true, std::memory_order_acq_rel)) return false;
  const std::shared_ptr<store_host> server = server_.lock();
  if (!server) return false;
  server->withdraw(*this);
  worker_core& worker = *server->home();
  const auto each_open = [&](auto&& act) {
    for (std::uint64_t last = 0;;) {
      std::shared_ptr<store_region> region;
      {
        const std::lock_guard guard(worker.lock());
        region = next_open(last);
      }
      if (!region) return;
      last = region->id();
      act(region);
    }
  };
  each_open([&](const std::shared_ptr<store_region>& each) {
    server->tell_withdrawn(each->id(),
                           if_there_is_memory([&] { return name_of(each->place().path); }));
    each->close(until);
  });
  // From here on nobody makes another thread.
  std::optional<disk_thread>& quick = threads_[static_cast<std::size_t>(lane::quick)];
  each_open([&](const std::shared_ptr<store_region>& each) {
    if (!quick) return;
    try {
      std::string spooled;
      {
        const std::lock_guard guard(worker.lock());
        if (!each->place().is_committing) spooled = each->place().spooled;
      }
      if (spooled.empty()) return;
      quick->queue()->start_always([directory = directory_, spooled = std::move(spooled)] {
        directory->discard(spooled);
        return disk_queue::answer();
      });
    } catch (const std::bad_alloc&) {  // swept by who opens it next
    }
  });
  for (std::optional<disk_thread>& each : threads_) {
    if (each) each->begin_stop();
  }
  return true;
}

void store_core::last_answers::run(worker_core&) {
  while (!left->empty()) {
    try {
      left->extract(left->begin()).mapped()(errc::revoked);
    } catch (const std::bad_alloc&) {  // whoever asked learns it from the end
    }
  }
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
  ending_->left = std::move(questions_);
  server->home()->hand_over(std::move(ending_));
}

}  // namespace ucx::detail
