#include "support/replaced/replaced_new.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

// For a program without a source that defines it.
[[gnu::weak]] bool ucx::test::may_allocate() noexcept { return true; }

void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return ucx::test::may_allocate() ? std::malloc(size > 0 ? size : 1) : nullptr;
}
void* operator new[](std::size_t size, const std::nothrow_t& none) noexcept {
  return operator new(size, none);
}
void* operator new(std::size_t size) {
  if (void* const made = operator new(size, std::nothrow)) return made;
  throw std::bad_alloc();
}
void* operator new[](std::size_t size) { return operator new(size); }
void operator delete(void* gone) noexcept { std::free(gone); }
void operator delete[](void* gone) noexcept { std::free(gone); }
void operator delete(void* gone, std::size_t) noexcept { std::free(gone); }
void operator delete[](void* gone, std::size_t) noexcept { std::free(gone); }
