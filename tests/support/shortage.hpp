// Memory of the library's that runs short: at the n-th allocation, once or from there on.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "support/callback_scope.hpp"
#include "ucx/worker.hpp"

namespace ucx::test {

/// So many allocations of UCX's callbacks go well; then one fails, or all do. Works in a program
/// whose `may_allocate` asks `memory_is_short`.
struct shortage {
  std::uint64_t left = ~std::uint64_t{0};
  bool lasts = false;
  std::uint64_t failed = 0;
};
/// Of the calling thread.
inline thread_local shortage current_shortage;

inline bool memory_is_short() noexcept {
  shortage& now = current_shortage;
  if (!callback_scope::inside() || now.left == ~std::uint64_t{0}) return false;
  if (now.left > 0) {
    --now.left;
    return false;
  }
  if (!now.lasts) now.left = ~std::uint64_t{0};
  ++now.failed;
  return true;
}

/// Ends the shortage; returns whether anything was short.
inline bool was_short() noexcept { return std::exchange(current_shortage, {}).failed > 0; }

/// Nothing of the library's is left behind `after` allocations, whoever asks; what is simulated has
/// its memory.
class lasting_shortage {
 public:
  explicit lasting_shortage(std::uint64_t after = 0) {
    current_shortage = {.left = after, .lasts = true};
  }
  ~lasting_shortage() { current_shortage = {}; }
  lasting_shortage(const lasting_shortage&) = delete;
  lasting_shortage& operator=(const lasting_shortage&) = delete;

 private:
  const callback_scope ours_{true};
};

/// A round, whatever becomes of it.
inline void round(worker& of) {
  try {
    of.progress();
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace ucx::test
