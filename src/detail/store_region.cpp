#include "detail/store_region.hpp"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

#include "detail/endpoint_core.hpp"
#include "detail/frame.hpp"
#include "detail/region_service.hpp"
#include "detail/store_core.hpp"
#include "ucx/error.hpp"

namespace ucx::detail {

store_region::store_region(std::shared_ptr<context_core> context,
                           const std::shared_ptr<store_core>& store,
                           std::shared_ptr<store_file> file, store_place place, access granted,
                           std::uint64_t size)
    : exposed_region(std::move(context), granted),
      store_(store),
      limit_(std::max(size, store->options().largest_file)),
      window_(store->options().write_window),
      file_(std::move(file)),
      place_(std::move(place)),
      size_(size) {}

std::shared_ptr<store_region> store_region::make(std::shared_ptr<context_core> context,
                                                 const std::shared_ptr<store_core>& store,
                                                 std::shared_ptr<store_file> file,
                                                 store_place place, access granted,
                                                 std::uint64_t size) {
  std::shared_ptr<store_region> made(new store_region(std::move(context), store, std::move(file),
                                                      std::move(place), granted, size));
  made->expose();
  return made;
}

store_region::~store_region() { close(); }

std::uint64_t store_region::writable_size() const noexcept {
  return includes(granted(), access::write) ? limit_ : size();
}

void store_region::release() noexcept { file_.reset(); }

/// Makes room for a write, in our memory and on the disk as far as it is ours to say.
std::error_code store_region::take(const frame& asked, store_core& store) noexcept {
  // A client knows how much may be on its way; one that does not keep to it gets nothing more.
  if (asked.length > window_ - std::min(window_, unwritten_)) return errc::busy;
  const std::uint64_t end = asked.offset + asked.length;
  const std::uint64_t growth = end - std::min(end, size());
  if (!store.charge(growth)) return errc::no_space;
  charged_ += growth;
  size_.store(std::max(end, size()), std::memory_order_relaxed);
  unwritten_ += asked.length;
  return {};
}

store_region::staging store_region::copy_of(std::span<const std::byte> payload) {
  staging taken;
  if (idle_.empty()) {
    taken = std::make_shared<std::vector<std::byte>>();
  } else {
    taken = std::move(idle_.back());
    idle_.pop_back();
  }
  taken->assign(payload.begin(), payload.end());
  return taken;
}

void store_region::write(endpoint_core& from, const frame& asked,
                         std::span<const std::byte> payload) {
  const std::shared_ptr<store_core> store = store_.lock();
  if (!store || !file_) return region_service::answer_write(from, asked, errc::revoked);
  if (const std::error_code refused = take(asked, *store)) {
    return region_service::answer_write(from, asked, refused);
  }
  const auto answer = [self = weak_from_this(), peer = from.weak_from_this(),
                       asked](std::error_code ec) {
    if (const auto region = self.lock()) region->unwritten_ -= asked.length;
    const std::shared_ptr<endpoint_core> to = peer.lock();
    if (to && !to->status()) region_service::answer_write(*to, asked, ec);
  };
  try {
    const bool started = store->write_later([file = file_, answer, bytes = copy_of(payload),
                                             self = weak_from_this(), offset = asked.offset] {
      const std::error_code ec = file->write(offset, *bytes);
      return disk_queue::answer([answer, self, bytes, ec] {
        if (const auto region = self.lock()) region->idle_.push_back(bytes);
        answer(ec);
      });
    });
    if (!started) answer(errc::busy);
  } catch (const std::bad_alloc&) {
    answer(errc::no_memory);
  }
}

}  // namespace ucx::detail
