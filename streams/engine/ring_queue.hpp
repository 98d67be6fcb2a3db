// A first-in first-out queue that stops allocating once it is as large as its use.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace ucx::detail {

/// `Item` is default-constructible and movable; a popped place holds a default one.
template <class Item>
class ring_queue {
 public:
  bool empty() const noexcept { return count_ == 0; }
  std::size_t size() const noexcept { return count_; }

  Item& operator[](std::size_t index) noexcept { return places_[place(index)]; }
  Item& front() noexcept { return places_[head_]; }

  /// Makes sure that the next push_back does not throw.
  void reserve_one() {
    if (count_ < places_.size()) return;
    std::vector<Item> larger(places_.empty() ? 4 : places_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move((*this)[i]);
    places_ = std::move(larger);
    head_ = 0;
  }
  void push_back(Item&& item) {
    reserve_one();
    places_[place(count_)] = std::move(item);
    ++count_;
  }
  void drop_front() noexcept { static_cast<void>(pop_front()); }
  Item pop_front() noexcept {
    Item first = std::exchange(places_[head_], Item());
    head_ = place(1);
    --count_;
    return first;
  }

 private:
  std::size_t place(std::size_t index) const noexcept { return (head_ + index) % places_.size(); }

  std::vector<Item> places_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace ucx::detail
