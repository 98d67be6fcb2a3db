// The memory that the messages of a pipe's writer go from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "pipes/pipe_places.hpp"

namespace ucx::detail {

/// The writer's own slots, places in the memory of a reader that offered some, and the memory of
/// callers. One slot, or place, is being filled: it is the area.
class pipe_slots {
 public:
  /// Numbers for a message that is from no slot: it goes from the caller's memory, or from none,
  /// because it was copied.
  static constexpr std::size_t callers = ~std::size_t{0};
  static constexpr std::size_t copied = callers - 1;
  /// No slot.
  static constexpr std::size_t none = callers;

  /// `takes_places`: where a reader offers some.
  explicit pipe_slots(bool takes_places) noexcept : takes_places_(takes_places) {}
  pipe_slots(const pipe_slots&) = delete;
  pipe_slots& operator=(const pipe_slots&) = delete;

  /// Makes so many slots for messages of `piece` bytes at most, whose memory comes when it is used.
  void open(std::size_t count, std::size_t piece);
  std::size_t piece() const noexcept { return piece_; }
  bool takes_places() const noexcept { return takes_places_; }
  /// Takes what a reader offered, where that could be mapped.
  void use(std::optional<mapped_places> places);
  /// Returns whether there are, or were, places.
  bool uses_places() const noexcept { return first_place_ != none; }
  /// Nothing is put in places any more, and their reader need not keep its memory for us.
  void leave_places() noexcept;
  bool is_place(std::size_t index) const noexcept {
    return index >= first_place_ && index < slots_.size();
  }
  /// Returns the number that the reader knows a place by.
  std::size_t number_of(std::size_t place) const noexcept { return place - first_place_; }

  /// Returns the first slot that is free, of the reader's if there is one. Beyond the first few of
  /// our own there is one only where those would have to wait for a program to read. `at_once` says
  /// that they need not.
  std::size_t find_free(bool at_once) const noexcept;
  /// Makes the whole of a slot the area; returns false where it gets no memory.
  bool fill(std::size_t index) noexcept;
  std::span<std::byte> area() const noexcept { return area_; }
  /// Returns the slot of the area, or of the one before.
  std::size_t filling() const noexcept { return filling_; }
  void drop_area() noexcept { area_ = {}; }
  /// Leaves the slot, unless what was sent from there has gone already: then it is in the
  /// processor's cache. One of our own is left for a place.
  void move_on() noexcept;

  /// A send reads what is there, and has ended.
  void lend(std::size_t from) noexcept;
  void take_back(std::size_t from) noexcept;
  /// A reader reads what is at this place, and has taken it.
  void give(std::size_t place) noexcept { slots_[place].in_use = 1; }
  void free(std::size_t place) noexcept { slots_[place].in_use = 0; }
  /// Returns how many sends read the caller's memory.
  std::size_t borrowed() const noexcept { return borrowed_; }
  /// No slot is read any more.
  void forget() noexcept;
  /// Returns what owns the memory of a slot of our own; null for all else.
  std::shared_ptr<const void> owner_of(std::size_t from) const noexcept {
    return from < slots_.size() ? slots_[from].memory : nullptr;
  }

 private:
  struct slot {
    std::shared_ptr<std::byte[]> memory;
    std::size_t in_use = 0;  // sends that read it, or 1: the reader reads it
  };
  std::span<std::byte> memory_of(std::size_t index) const noexcept;
  void add_places();

  const bool takes_places_;
  std::size_t piece_ = 0;
  std::optional<mapped_places> places_;
  std::size_t first_place_ = none;  // from this slot on they are places
  std::vector<slot> slots_;
  std::size_t filling_ = 0;
  std::span<std::byte> area_;
  std::size_t borrowed_ = 0;
};

}  // namespace ucx::detail
