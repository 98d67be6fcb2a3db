// The memory of one share of an object, taken before it is needed.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace ucx::detail {

/// Holds an object once more after its last `shared_ptr` has gone, even when no memory is left.
class reserved_share {
 public:
  /// Errors: std::bad_alloc.
  reserved_share() : block_(::operator new(size)) {}
  ~reserved_share() { ::operator delete(block_); }
  reserved_share(const reserved_share&) = delete;
  reserved_share& operator=(const reserved_share&) = delete;

  /// Returns a `shared_ptr` to `held` with the deleter `last`. REQUIRES: the first call.
  template <class Held, class Last>
  std::shared_ptr<Held> take(Held* held, Last last) noexcept {
    return {held, last, allocator<Held>{std::exchange(block_, nullptr)}};
  }

 private:
  static constexpr std::size_t size = 128;

  /// Makes the control block of the `shared_ptr` in the reserved memory, and frees that with it.
  template <class Element>
  struct allocator {
    using value_type = Element;

    explicit allocator(void* block) noexcept : memory(block) {}
    template <class Other>
    allocator(const allocator<Other>& other) noexcept  // NOLINT(google-explicit-constructor)
        : memory(other.memory) {}

    Element* allocate(std::size_t) noexcept {
      static_assert(sizeof(Element) <= size && alignof(Element) <= alignof(std::max_align_t));
      return static_cast<Element*>(memory);
    }
    void deallocate(Element* gone, std::size_t) noexcept { ::operator delete(gone); }
    template <class Other>
    bool operator==(const allocator<Other>& other) const noexcept {
      return memory == other.memory;
    }

    void* memory;
  };

  void* block_;
};

}  // namespace ucx::detail
