#include "engine/reading_side.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "ucx/error.hpp"
#include "ucx/memory_resources.hpp"

namespace ucx::detail {

void reading_side::begin() {
  // Bytes in place are there even when they are no longer true.
  const bool in_place = area_.has == content::lent && area_.holds(source_.position());
  if (in_place && source_.bytes().status()) drop_area();
  if (end_.doubtful()) look_at_end();
}

bool reading_side::refill() {
  if (is_at_end()) return false;
  if (!area_.holds(source_.position())) fetch({});
  return true;
}

bool reading_side::read(std::span<std::byte> into) {
  while (!into.empty()) {
    if (is_at_end()) return false;
    const std::size_t there =
        static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), source_.left()));
    const auto part = copy_from_area(into.first(there));
    if (!part.empty()) fetch(part);
    into = into.subspan(there);
  }
  return true;
}

bool reading_side::step_back() {
  if (source_.position() == 0 || source_.position() > source_.size()) return false;
  const std::uint64_t before = source_.position() - 1;
  if (!area_.holds(before)) {
    // Room to both sides: who goes back once may do so again, and then comes forward.
    const std::size_t room = std::min(pool_.block_size(), read_ahead::first_unit) / 2;
    source_.move_to(before - std::min<std::uint64_t>(before, room));
    fetch({});
  }
  source_.move_to(before);
  if (!area_.holds(before)) fetch({});
  return true;
}

/// A read has come to the end that is known. Returns whether there is more behind it by now.
bool reading_side::look_behind_end() {
  if (!end_.reached()) return false;
  written_.flush();  // who is asked has to know of them
  const std::uint64_t before = source_.size();
  source_.take_size(end_.measure(before));
  if (source_.size() < before) {
    const std::string less = std::to_string(before - source_.size());
    source_.refuse(errc::content_changed, less + " bytes were cut off: reading");
  }
  return source_.position() < source_.size();
}

/// Some of what is known may be gone: who was told so reads what there is.
void reading_side::look_at_end() {
  drop();
  written_.flush();
  source_.take_size(end_.look());
}

/// Reads `into`, or without one at least a byte into the get area.
void reading_side::fetch(std::span<std::byte> into) {
  if (source_.bytes().in_place()) return fetch_in_place(into);
  if (source_.size() > source_.visible_size()) written_.make_all_visible();
  reads_.begin(source_.position(), into);
  do {
    const std::uint64_t position = source_.position();
    const std::uint64_t end = written_.readable_end(position, source_.size());
    const auto part =
        into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), end - position)));
    make_room();
    reads_.ask(position, part, end);
    read_ahead::piece arrived = reads_.take_first();
    if (arrived.memory) {
      keep(std::move(arrived));
      into = copy_from_area(into);
    } else {
      source_.advance(arrived.length);
      into = into.subspan(arrived.length);
    }
  } while (!into.empty());
}

/// Likewise where the bytes are here. The get area is the source's own memory, a buffer's size of
/// it, so that the end of the source is noticed now and then.
void reading_side::fetch_in_place(std::span<std::byte> into) {
  if (into.empty()) {
    const std::uint64_t position = source_.position();
    std::uint64_t first = position - position % pool_.block_size();
    if (written_.readable_end(first, source_.size()) <= position) first = position;
    const std::uint64_t last =
        std::min(written_.readable_end(position, source_.size()), first + pool_.block_size());
    const auto there = source_.bytes().view(first, static_cast<std::size_t>(last - first));
    drop_area();
    // The area is only read: alter() makes a copy first.
    area_.bytes = const_cast<std::byte*>(there.data());
    area_.offset = first;
    area_.length = there.size();
    area_.has = content::lent;
  }
  while (!into.empty()) {
    const std::uint64_t position = source_.position();
    const std::uint64_t end = written_.readable_end(position, position + into.size());
    const auto there = source_.bytes().view(position, static_cast<std::size_t>(end - position));
    copy_memory(into.data(), there.data(), there.size(), copying_);
    source_.advance(there.size());
    into = into.subspan(there.size());
  }
}

void reading_side::alter() {
  if (area_.has == content::lent) {
    const auto at = static_cast<std::size_t>(source_.position() - area_.offset);
    const std::size_t length = std::min(area_.length, pool_.block_size());
    block copy = pool_.take(length);
    // The area is a buffer's size at most; were it longer, the position would have to be in it.
    const std::size_t first = at < length ? 0 : at + 1 - length;
    std::memcpy(copy.get(), area_.bytes + first, length);
    area_.memory = std::move(copy);
    area_.bytes = area_.memory.get();
    area_.offset += first;
    area_.length = length;
  }
  area_.has = content::altered;
}

/// Waits for earlier transfers where the first read has no room: for writes, and reads that were
/// given up.
void reading_side::make_room() {
  while (reads_.empty() && in_flight_.left() < reads_.flow().piece() &&
         (pool_.wait_for_parked() || written_.wait_for_first())) {
  }
}

void reading_side::keep(read_ahead::piece&& arrived) noexcept {
  pool_.give_back(std::move(area_.memory));
  area_.memory = std::move(arrived.memory);
  area_.bytes = area_.memory.get();
  area_.offset = arrived.offset;
  area_.length = arrived.length;
  area_.has = content::read;
}

std::span<std::byte> reading_side::copy_from_area(std::span<std::byte> into) {
  if (into.empty() || !area_.holds(source_.position())) return into;
  const auto at = static_cast<std::size_t>(source_.position() - area_.offset);
  const std::size_t copied = std::min(into.size(), area_.length - at);
  copy_memory(into.data(), area_.bytes + at, copied, copying_);
  source_.advance(copied);
  return into.subspan(copied);
}

void reading_side::drop_area() noexcept {
  pool_.give_back(std::move(area_.memory));
  area_.bytes = nullptr;
  area_.length = 0;
  area_.has = content::none;
}

/// Bytes that were moved here stay as they are.
void reading_side::leave_source() noexcept {
  reads_.drop();
  if (area_.has == content::lent) drop_area();
}

}  // namespace ucx::detail
