// Objects that a child of fork() has from its parent, and may not destroy: `leave_to_parent` of the
// core, which the streams do not see.
#pragma once

#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

namespace ucx::detail {

/// Kept for good, and found from here on, so that leak checkers report no leak.
template <class Owner>
struct kept_owner {
  explicit kept_owner(Owner& owner) noexcept : held(std::move(owner)), next(all.exchange(this)) {}
  kept_owner(const kept_owner&) = delete;
  kept_owner& operator=(const kept_owner&) = delete;

  Owner held;
  kept_owner* const next;
  static inline constinit std::atomic<kept_owner*> all{nullptr};
};

/// In a child takes over an object of the parent's from `owner`, and keeps it. Its end would tell
/// the parent's peers, and remove the parent's files. Returns whether it is the parent's. Threads:
/// any.
template <class Owner>
bool keep_for_parent(Owner& owner) noexcept {
  if (!owner || !owner->is_inherited()) return false;
  if (new (std::nothrow) kept_owner<Owner>(owner) != nullptr) return true;
  // There is no memory to keep it by: it is left where it lies.
  alignas(Owner) std::byte place[sizeof(Owner)];
  ::new (static_cast<void*>(place)) Owner(std::move(owner));
  return true;
}

}  // namespace ucx::detail
