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

/// Returns whether this process was forked from one that had contexts at that moment. Then all that
/// there is of the library's is the parent's, as no context can be made here: UCX's threads are not
/// there, its sockets and shared memory are the parent's, and a lock may be held for ever.
inline bool is_forked_child() noexcept { return forked_child.load(std::memory_order_relaxed); }

/// Counts a context for as long as it is there, for children that are forked meanwhile.
class counted_context {
 public:
  counted_context() noexcept;
  ~counted_context();
  counted_context(const counted_context&) = delete;
  counted_context& operator=(const counted_context&) = delete;
};

/// What a child keeps for good: found from here on, so that it is no leak to who looks for those.
struct left_share {
  left_share() noexcept;
  left_share(const left_share&) = delete;
  left_share& operator=(const left_share&) = delete;
  virtual ~left_share() = default;
  left_share* const next;
};

/// In a child lets go of what its parent made, without destroying anything: what that would do to
/// sockets, shared memory and files would be done to the parent's. Returns whether it is a child.
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
