#include "store/store_region.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "connection/endpoint_core.hpp"
#include "region/exposed/region_service.hpp"
#include "region/exposed/write_room.hpp"
#include "store/store_core.hpp"
#include "ucx/error.hpp"
#include "wire/frame.hpp"
#include "worker/worker_core.hpp"

namespace ucx::detail {

store_region::store_region(std::shared_ptr<context_core> context,
                           const std::shared_ptr<store_core>& store,
                           std::shared_ptr<store_file> file, store_place place, access granted,
                           std::uint64_t size)
    : exposed_region(std::move(context), granted),
      store_(store),
      home_(store->home()),
      limit_(std::max(size, store->admission().largest_file())),
      window_(store->admission().window()),
      file_(std::move(file)),
      place_(std::move(place)),
      account_(std::make_shared<file_account>(store->quota(), size)) {}

std::shared_ptr<store_region> store_region::make(std::shared_ptr<context_core> context,
                                                 const std::shared_ptr<store_core>& store,
                                                 std::shared_ptr<store_file> file,
                                                 store_place place, access granted,
                                                 std::uint64_t size) {
  std::shared_ptr<store_region> made(new store_region(std::move(context), store, std::move(file),
                                                      std::move(place), granted, size));
  made->require_grants();
  made->expose();
  return made;
}

store_region::~store_region() { close(); }

std::uint64_t store_region::writable_size() const noexcept {
  return includes(granted(), access::write) ? limit_ : size();
}

void store_region::reach(std::uint64_t size) noexcept {
  std::uint64_t known = seen_size_.load(std::memory_order_relaxed);
  while (known < size &&
         !seen_size_.compare_exchange_weak(known, size, std::memory_order_relaxed)) {
  }
}

std::uint64_t store_region::size() const noexcept {
  return std::max(account_->size(), seen_size_.load(std::memory_order_relaxed));
}

void store_region::release() noexcept { file_.reset(); }

store_region::staging store_region::copy_of(std::span<const std::byte> payload) {
  staging taken;
  if (idle_.empty()) {
    taken = std::make_shared<std::vector<std::byte>>();
  } else {
    taken = std::move(idle_.back());
    idle_.pop_back();
    idle_bytes_ -= taken->capacity();
  }
  taken->assign(payload.begin(), payload.end());
  return taken;
}

void store_region::put_back(staging used) {
  const std::size_t capacity = used->capacity();
  if (capacity > window_ - std::min(window_, idle_bytes_)) return;
  idle_.push_back(std::move(used));
  idle_bytes_ += capacity;
}

void store_region::writer::answer(const frame& asked, std::error_code ec) const {
  const auto tell = [to = peer, asked, ec] {
    const std::shared_ptr<endpoint_core> still = to.lock();
    if (still && !still->status()) region_service::answer_write(*still, asked, ec);
  };
  if (!is_elsewhere) return tell();
  if (const std::shared_ptr<worker_core> other = worker.lock()) other->post_work(tell);
}

void store_region::write(endpoint_core& from, const frame& asked,
                         std::span<const std::byte> payload) {
  const std::shared_ptr<worker_core> home = home_.lock();
  if (!home) return region_service::answer_write(from, asked, errc::revoked);
  if (home.get() != &from.worker()) return hand_over(*home, from, asked, payload);
  take({from.weak_from_this()}, asked, payload);
}

void store_region::hand_over(worker_core& home, endpoint_core& from, const frame& asked,
                             std::span<const std::byte> payload) {
  // Bytes on their way to the store's worker are bounded here, the disk's work is bounded there.
  const std::uint64_t room = write_room(asked.length, window_);
  if (handed_over_.load(std::memory_order_relaxed) + room > window_) {
    return region_service::answer_write(from, asked, errc::busy);
  }
  handed_over_.fetch_add(room, std::memory_order_relaxed);
  try {
    home.post_work([self = weak_from_this(), asked, room,
                    by = writer{from.weak_from_this(), from.worker().weak_from_this(), true},
                    copy = std::vector<std::byte>(payload.begin(), payload.end())] {
      const std::shared_ptr<store_region> region = self.lock();
      if (!region) return by.answer(asked, errc::revoked);
      region->handed_over_.fetch_sub(room, std::memory_order_relaxed);
      region->take(by, asked, copy);
    });
  } catch (const std::bad_alloc&) {
    handed_over_.fetch_sub(room, std::memory_order_relaxed);
    region_service::answer_write(from, asked, errc::no_memory);
  }
}

void store_region::take(writer from, const frame& asked, std::span<const std::byte> payload) {
  const std::shared_ptr<store_core> store = store_.lock();
  const std::shared_ptr<store_file> into = file_.get();
  if (!store || !into) return from.answer(asked, errc::revoked);
  if (place_.is_lost) return from.answer(asked, errc::no_such_name);
  // A client knows how much may be on its way; one that does not keep to it gets nothing more.
  const auto room = static_cast<std::size_t>(write_room(asked.length, window_));
  if (room > window_ - std::min(window_, unwritten_)) {
    return from.answer(asked, errc::busy);
  }
  const std::uint64_t before = account_->size();
  if (const std::error_code refused = account_->take(asked.offset + asked.length)) {
    return from.answer(asked, refused);
  }
  std::error_code failed = errc::no_memory;
  try {
    const auto ec = std::make_shared<std::error_code>();
    const staging bytes = copy_of(payload);
    // Made here, where it can be told that there is no memory for it.
    disk_queue::answer done = [self = weak_from_this(), from, asked, bytes, ec, room] {
      if (const auto region = self.lock()) {
        region->unwritten_ -= room;
        region->put_back(bytes);
      }
      from.answer(asked, *ec);
    };
    const bool started =
        store->writing().write_later([file = into, account = account_, bytes, ec,
                                      offset = asked.offset, done = std::move(done)]() mutable {
          *ec = file->write(offset, *bytes);
          account->wrote(*file, *ec);
          return std::move(done);
        });
    if (started) {
      unwritten_ += room;
      return;
    }
    failed = errc::revoked;
  } catch (const std::bad_alloc&) {
  }
  account_->take_back(before);
  from.answer(asked, failed);
}

}  // namespace ucx::detail
