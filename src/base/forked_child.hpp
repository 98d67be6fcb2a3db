// A child of fork(): it has its parent's objects as they were, and can use none of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <tuple>
#include <utility>

namespace ucx::detail {

/// Set in a child by fork() itself, before the child goes on.
extern constinit std::atomic<bool> forked_child;

/// Returns whether this process was forked from one that had contexts at that moment. No context
/// can be made here, so every object of the library is the parent's. UCX's threads are missing, its
/// sockets and shared memory are the parent's, and a lock may be held for ever.
inline bool is_forked_child() noexcept { return forked_child.load(std::memory_order_relaxed); }

/// Counts a context for as long as it is there, for children that are forked meanwhile.
class counted_context {
 public:
  counted_context() noexcept;
  ~counted_context();
  counted_context(const counted_context&) = delete;
  counted_context& operator=(const counted_context&) = delete;
};

/// An object that a child keeps for good. A list keeps it reachable, so that leak checkers do not
/// report it.
struct left_share {
  left_share() noexcept;
  left_share(const left_share&) = delete;
  left_share& operator=(const left_share&) = delete;
  virtual ~left_share() = default;
  left_share* const next;
};

/// Lets go of the parent's objects in a child, without destroying them: that would act on the
/// parent's sockets, shared memory and files. Returns whether this process is such a child.
template <class... Shares>
bool leave_to_parent(Shares&... shares) noexcept {
  if (!is_forked_child()) return false;
  struct left final : left_share {
    explicit left(Shares&... taken) noexcept : held(std::move(taken)...) {}
    std::tuple<Shares...> held;
  };
  if (new (std::nothrow) left(shares...) != nullptr) return true;
  using all = std::tuple<Shares...>;
  alignas(all) std::byte place[sizeof(all)];
  ::new (static_cast<void*>(place)) all(std::move(shares)...);
  return true;
}

}  // namespace ucx::detail
