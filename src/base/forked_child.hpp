// A child of fork(): it has its parent's objects as they were, and can use none of them. It may
// make its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <tuple>
#include <utility>

#include "ucx/context.hpp"  // process_stamp

namespace ucx::detail {

/// Returns how many calls of fork() led to this process: a child has another number than its
/// parent.
std::uint32_t forks_so_far() noexcept;

/// Returns whether this process was forked from one that had contexts of UCX's at that moment, or
/// is a descendant of such a child. UCX's thread is missing here, and its locks may be held for
/// ever: no context of UCX's can be made.
bool lost_ucx_by_fork() noexcept;

/// Counts a context for as long as it is there, for children that are forked meanwhile.
class counted_context {
 public:
  explicit counted_context(bool is_of_ucx) noexcept;
  ~counted_context();
  counted_context(const counted_context&) = delete;
  counted_context& operator=(const counted_context&) = delete;

 private:
  const bool is_of_ucx_;
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

/// Lets go of an object of the parent's in a child, without destroying it: that would act on the
/// parent's sockets, shared memory and files. `beside` are further parts of it. Returns whether it
/// is the parent's.
template <class Share, class... Shares>
bool leave_to_parent(Share& first, Shares&... beside) noexcept {
  if (!first || !first->is_inherited()) return false;
  struct left final : left_share {
    explicit left(Share& taken, Shares&... further) noexcept
        : held(std::move(taken), std::move(further)...) {}
    std::tuple<Share, Shares...> held;
  };
  if (new (std::nothrow) left(first, beside...) != nullptr) return true;
  using all = std::tuple<Share, Shares...>;
  alignas(all) std::byte place[sizeof(all)];
  ::new (static_cast<void*>(place)) all(std::move(first), std::move(beside)...);
  return true;
}

}  // namespace ucx::detail
