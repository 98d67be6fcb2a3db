// Finds entries by numbers that a peer echoes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace ucx::detail {

/// A number consists of a slot's index and the count of the slot's uses, which makes numbers of
/// ended entries invalid. 0 is none.
template <class Entry>
class id_table {
 public:
  /// For one more: adding it takes no memory.
  void make_room() {
    if (first_free_ != none) return;
    slots_.push_back(slot{nullptr, 0, none});
    first_free_ = static_cast<std::uint32_t>(slots_.size() - 1);
  }
  std::uint64_t add(Entry& entry) {
    make_room();
    const std::uint32_t index = first_free_;
    slot& taken = slots_[index];
    first_free_ = taken.next_free;
    taken.entry = &entry;
    ++taken.uses;
    return (std::uint64_t{taken.uses} << 32U) | index;
  }
  void remove(std::uint64_t id) noexcept {
    const auto index = static_cast<std::uint32_t>(id);
    slots_[index].entry = nullptr;
    slots_[index].next_free = std::exchange(first_free_, index);
  }
  Entry* find(std::uint64_t id) const noexcept {
    const auto index = static_cast<std::uint32_t>(id);
    if (index >= slots_.size() || slots_[index].uses != static_cast<std::uint32_t>(id >> 32U)) {
      return nullptr;
    }
    return slots_[index].entry;
  }

 private:
  struct slot {
    Entry* entry = nullptr;
    std::uint32_t uses = 0;
    std::uint32_t next_free = 0;
  };
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  std::vector<slot> slots_;
  std::uint32_t first_free_ = none;
};

}  // namespace ucx::detail
