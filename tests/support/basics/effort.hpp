// How much of a long test is done: under a sanitizer, whose builds are some ten times as slow, a
// part.
#pragma once

#include <cstddef>

#include "support/basics/sanitizer.hpp"

namespace ucx::test {

/// One of so many rounds is done.
#if defined(UCXIO_SAVED_EFFORT)
inline constexpr int saved_effort = UCXIO_SAVED_EFFORT;
#elif defined(UCXIO_WITH_ASAN) || defined(UCXIO_WITH_TSAN)
inline constexpr int saved_effort = 8;
#else
inline constexpr int saved_effort = 1;
#endif

/// Returns how many of a test's `all` rounds, seeds or bytes are done: all of them, or a part, but
/// `least` at any rate.
template <class Integer>
constexpr Integer effort(Integer all, Integer least = 1) noexcept {
  const Integer part = all / static_cast<Integer>(saved_effort);
  if (saved_effort == 1 || all < least) return all;
  return part < least ? least : part;
}

/// The same of a length that something might not hold: only ThreadSanitizer's build, which has
/// nothing to tell of that, saves.
template <class Integer>
constexpr Integer effort_of_length(Integer all) noexcept {
#if defined(UCXIO_WITH_TSAN)
  return effort(all);
#else
  return all;
#endif
}

/// Which of a row's moments are tried: each, or one of `step` from `first` on. Tests that try the
/// same row with different `salt` begin at different moments.
struct sampled {
  constexpr explicit sampled(std::size_t salt, int widest = saved_effort) noexcept
      : step(widest < saved_effort ? widest : saved_effort),
        first(static_cast<int>(salt % static_cast<std::size_t>(step))) {}

  int step;
  int first;
};

}  // namespace ucx::test
