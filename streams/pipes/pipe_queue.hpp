// A queue whose memory stays: what comes and goes takes none, up to the longest that it was.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace ucx::detail {

/// A ring. `std::deque` takes and frees memory on its way.
template <class T>
class pipe_queue {
 public:
  bool empty() const noexcept { return count_ == 0; }
  std::size_t size() const noexcept { return count_; }
  T& operator[](std::size_t i) noexcept { return ring_[(head_ + i) % ring_.size()]; }
  const T& operator[](std::size_t i) const noexcept { return ring_[(head_ + i) % ring_.size()]; }
  T& front() noexcept { return (*this)[0]; }

  /// Makes room for one more: adding it throws nothing then.
  void reserve() {
    if (count_ < ring_.size()) return;
    std::vector<T> larger(2 * count_ + 4);
    for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move((*this)[i]);
    ring_ = std::move(larger);
    head_ = 0;
  }
  void push_back(T added) {
    reserve();
    (*this)[count_++] = std::move(added);
  }
  void pop_front() noexcept {
    front() = T();
    head_ = (head_ + 1) % ring_.size();
    --count_;
  }
  void clear() noexcept {
    while (!empty()) pop_front();
  }

 private:
  std::vector<T> ring_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace ucx::detail
