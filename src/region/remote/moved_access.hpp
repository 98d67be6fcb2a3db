// An access to a peer's region whose bytes a mover moves, where there is one.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "region/paths/direct_move.hpp"
#include "region/remote/region_question.hpp"
#include "worker/looked_at_operation.hpp"

namespace ucx::detail {

/// Where it is given up, it is done when the mover has let go of the caller's memory. Nothing
/// waits for that under the worker's lock.
class moved_access : public region_question,
                     public looked_at_operation,
                     protected direct_move::user {
 public:
  /// Before it begins: `by` moves the bytes, where it can; the owner is asked where it can not.
  void move_by(std::unique_ptr<direct_move> by) noexcept { direct_ = std::move(by); }

  void look() noexcept final {
    if (direct_) direct_->look();
  }
  /// Where no memory is left for it, nothing keeps its connection.
  void left() noexcept final;
  bool ends_with_connection() const noexcept final { return !direct_; }

 protected:
  /// Returns whether the mover has the bytes, or will have.
  bool is_moving() const noexcept { return direct_ != nullptr; }
  /// Begins, unless the owner lends the memory no more; `moved()` follows.
  void move(std::span<std::byte> bytes, bool into_owner);
  /// Gives the move up, if there is one. Returns whether UCX has no bytes of it. Else `moved()`
  /// follows, and this is called again at the deadline, which it puts off.
  bool stop_moving() noexcept;
  /// The mover is over, and goes.
  void forget_mover() noexcept;

 private:
  std::unique_ptr<direct_move> direct_;  // null once it has failed
  bool is_given_up_ = false;
  bool is_overdue_ = false;               // UCX did not let go in time
  std::shared_ptr<endpoint_core> keeps_;  // where the request is gone, and it is not done
};

}  // namespace ucx::detail
