// Memory of the library's that runs short: at the n-th allocation, once or from there on.
#pragma once

#include <atomic>
#include <cstdint>
#include <new>
#include <utility>

#include "support/fake_ucp/callback_scope.hpp"
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

/// No other thread than that which made it has memory for what the library allocates there.
class shortage_of_other_threads {
 public:
  shortage_of_other_threads() noexcept {
    has_memory_ = true;
    is_there_.store(true);
  }
  ~shortage_of_other_threads() {
    is_there_.store(false);
    has_memory_ = false;
  }
  shortage_of_other_threads(const shortage_of_other_threads&) = delete;
  shortage_of_other_threads& operator=(const shortage_of_other_threads&) = delete;

  static bool is_here() noexcept { return is_there_.load() && !has_memory_; }

 private:
  static inline thread_local bool has_memory_ = false;
  static inline std::atomic<bool> is_there_{false};
};

inline bool memory_is_short() noexcept {
  if (shortage_of_other_threads::is_here()) return true;
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
