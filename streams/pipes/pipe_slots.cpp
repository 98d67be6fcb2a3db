#include "pipes/pipe_slots.hpp"

#include <new>

namespace ucx::detail {
namespace {

/// So many are used while readers receive at once, so that a writer finds them in its cache.
constexpr std::size_t few_slots = 8;

/// Not filled. Null without memory.
std::shared_ptr<std::byte[]> made_memory(std::size_t size) noexcept {
  try {
    return std::shared_ptr<std::byte[]>(new std::byte[size]);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

void pipe_slots::open(std::size_t count, std::size_t piece) {
  piece_ = piece;
  slots_.resize(count);
  add_places();
}

void pipe_slots::use(std::optional<mapped_places> places) {
  places_ = std::move(places);
  if (!slots_.empty()) add_places();  // else it is not known yet how many there are before them
}

void pipe_slots::add_places() {
  if (!places_) return;
  first_place_ = slots_.size();
  slots_.resize(first_place_ + places_->count());
}

void pipe_slots::leave_places() noexcept {
  area_ = {};
  slots_.resize(std::min(slots_.size(), first_place_));
  places_.reset();
}

std::span<std::byte> pipe_slots::memory_of(std::size_t index) const noexcept {
  if (is_place(index)) return places_->place(index - first_place_).first(piece_);
  return {slots_[index].memory.get(), piece_};
}

std::size_t pipe_slots::find_free(bool at_once) const noexcept {
  for (std::size_t i = first_place_; i < slots_.size(); ++i) {
    if (slots_[i].in_use == 0) return i;
  }
  const std::size_t own = std::min(first_place_, slots_.size());
  const std::size_t most = at_once ? few_slots : own;
  for (std::size_t i = 0; i < std::min(most, own); ++i) {
    if (slots_[i].in_use == 0) return i;
  }
  return none;
}

bool pipe_slots::fill(std::size_t index) noexcept {
  if (!is_place(index)) {
    slot& next = slots_[index];
    if (!next.memory) next.memory = made_memory(piece_);
    if (!next.memory) return false;
  }
  filling_ = index;
  area_ = memory_of(index);
  return true;
}

void pipe_slots::move_on() noexcept {
  if (slots_[filling_].in_use > 0 || (places_ && !is_place(filling_))) area_ = {};
}

void pipe_slots::lend(std::size_t from) noexcept {
  if (from == callers) {
    ++borrowed_;
  } else if (from != copied) {
    ++slots_[from].in_use;
  }
}

void pipe_slots::take_back(std::size_t from) noexcept {
  if (from == callers) {
    --borrowed_;
  } else if (from != copied) {
    --slots_[from].in_use;
  }
}

void pipe_slots::forget() noexcept {
  for (slot& each : slots_) each.in_use = 0;
  borrowed_ = 0;
}

}  // namespace ucx::detail
