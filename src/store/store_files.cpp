#include "store/store_files.hpp"

#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "base/file_preallocation.hpp"
#include "base/if_there_is_memory.hpp"
#include "store/store_core.hpp"
#include "store/store_host.hpp"
#include "ucx/error.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

using lane = store_disk::lane;

template <class Work>
void store_files::open_by(store_place place, access wanted, Work work, opened answer) {
  if (const std::error_code refused = store_.admission().admit(place)) {
    return answer(refused, nullptr, {});
  }
  struct found {
    store_place place;
    opened_file file;
  };
  // The handler of what may be answered at once says so too: `place` was admitted.
  store_.disk().ask<found>(
      lane::quick,
      [place, directory = store_.directory(), work = std::move(work)]() -> result<found> {
        found made{.place = place, .file = {}};
        result<opened_file> file = work(*directory, made.place);
        if (!file) return file.why();
        made.file = *std::move(file);
        return made;
      },
      [weak = store_.weak_from_this(), place, wanted, answer](std::error_code ec, found made) {
        const std::shared_ptr<store_core> store = weak.lock();
        if (!store) return answer(errc::no_such_name, nullptr, {});
        if (!ec) {
          return store->files().let_in(made.place, wanted, std::move(made.file), answer);
        }
        store->admission().forget(place);
        answer(ec, nullptr, {});
      });
}

void store_files::let_in(const store_place& place, access wanted, opened_file file,
                         const opened& answer) {
  const std::shared_ptr<disk_queue> closing = store_.disk().queue(lane::quick);
  if (!closing) {  // it was closed meanwhile
    store_.admission().forget(place);
    return answer(errc::no_such_name, nullptr, {});
  }
  // Others may change a file that is not in the spool.
  const bool is_new = !place.spooled.empty() && store_.directory()->room_ahead_helps();
  file_preallocation ahead =
      is_new ? file_preallocation(file.descriptor.get()) : file_preallocation();
  std::shared_ptr<store_region> region;
  try {
    region =
        store_region::make(store_.context(), store_.shared_from_this(),
                           std::make_shared<store_file>(std::move(file.descriptor), closing, ahead),
                           place, wanted, file.facts.size);
    regions_.emplace(region->id(), region);
  } catch (const std::bad_alloc&) {
    if (!place.spooled.empty()) discard(place.spooled);
    store_.admission().forget(place);
    return answer(errc::no_memory, nullptr, {});
  }
  answer({}, region, file.facts);
}

void store_files::open(const std::string& path, access wanted, opened answer) {
  const bool writes = includes(wanted, access::write);
  const store_place known{.path = path};
  if (!writes && !store_.admission().admit(known)) {
    std::optional<opened_file> file = store_.directory()->open_now(path);
    if (file) return let_in(known, wanted, std::move(*file), answer);
    store_.admission().forget(known);
  }
  open_by(
      {.path = path, .is_written = writes}, wanted,
      [writes](const store_directory& in, const store_place& place) {
        return in.open_file(place.path, writes);
      },
      std::move(answer));
}

void store_files::create(const std::string& path, access wanted, bool exclusive, opened answer) {
  open_by(
      {.path = path, .exclusive = exclusive, .is_written = true}, wanted,
      [](const store_directory& in, store_place& place) -> result<opened_file> {
        const std::error_code taken = in.check_replaced(place.path, place.exclusive);
        if (taken) return failure{taken};
        result<spooled_file> made = in.create_unnamed();
        if (!made) return made.why();
        place.spooled = std::move(made->name);
        const result<file_facts> facts = facts_of(made->descriptor.get());
        if (facts) return opened_file{std::move(made->descriptor), *facts};
        in.discard(place.spooled);
        return facts.why();
      },
      std::move(answer));
}

void store_files::append(const std::string& path, access wanted, opened answer) {
  open_by(
      {.path = path, .is_written = true}, wanted,
      [](const store_directory& in, const store_place& place) {
        return in.open_or_create(place.path);
      },
      std::move(answer));
}

void store_files::discard(const std::string& spooled) noexcept {
  try {
    const std::shared_ptr<disk_queue> disk = store_.disk().queue(lane::quick);
    if (!disk) return;  // swept by who opens it next
    disk->start_always([directory = store_.directory(), spooled] {
      directory->discard(spooled);
      return disk_queue::answer();
    });
  } catch (const std::bad_alloc&) {  // likewise
  }
}

/// Frees a name behind the writes to it that are on their way to the disk. Returns false where the
/// caller has to free it.
bool store_files::forget_behind_writes(const store_place& place) noexcept {
  try {
    const std::shared_ptr<disk_queue> disk = store_.disk().queue(lane::writing);
    disk_queue::answer ending = [weak = store_.weak_from_this(), place] {
      if (const std::shared_ptr<store_core> store = weak.lock()) store->admission().forget(place);
    };
    return disk && disk->start_always([ending = std::move(ending)] { return ending; });
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void store_files::let_go(store_region& region) noexcept {
  if (regions_.erase(region.id()) == 0) return;
  const store_place& place = region.place();
  if (!place.spooled.empty() && !place.is_committing) {
    discard(place.spooled);
    region.account()->abandon();
  }
  const bool waits = place.is_committing || region.account()->is_written();
  if (!place.is_written || !waits || !forget_behind_writes(place)) {
    store_.admission().forget(place);
  }
  region.close();
}

/// Returns the first file that is open of those with higher numbers.
std::shared_ptr<store_region> store_files::next_open(std::uint64_t behind) const noexcept {
  for (auto at = regions_.upper_bound(behind); at != regions_.end(); ++at) {
    if (std::shared_ptr<store_region> region = at->second.lock()) return region;
  }
  return nullptr;
}

/// `act` is called without the lock.
template <class Act>
void store_files::each_open(worker_core& home, Act act) const {
  for (std::uint64_t last = 0;;) {
    std::shared_ptr<store_region> region;
    {
      const std::lock_guard guard(home.lock());
      region = next_open(last);
    }
    if (!region) return;
    last = region->id();
    act(region);
  }
}

void store_files::withdraw(store_host& server, clock::time_point until) noexcept {
  each_open(*server.home(), [&](const std::shared_ptr<store_region>& each) {
    server.tell_withdrawn(each->id(),
                          if_there_is_memory([&] { return store_.name_of(each->place().path); }));
    each->close(until);
  });
}

void store_files::discard_unnamed(worker_core& home) noexcept {
  const std::shared_ptr<disk_queue> disk = store_.disk().last_queue(lane::quick);
  if (!disk) return;
  each_open(home, [&](const std::shared_ptr<store_region>& each) {
    try {
      std::string spooled;
      {
        const std::lock_guard guard(home.lock());
        if (!each->place().is_committing) spooled = each->place().spooled;
      }
      if (spooled.empty()) return;
      disk->start_always([directory = store_.directory(), spooled = std::move(spooled)] {
        directory->discard(spooled);
        return disk_queue::answer();
      });
    } catch (const std::bad_alloc&) {  // swept by who opens it next
    }
  });
}

}  // namespace ucx::detail
