// The order in which the operations of a file take effect, where it matters.
#pragma once

#include <cstdint>
#include <memory>
#include <system_error>

#include "base/intrusive_list.hpp"
#include "ucx/error.hpp"
#include "ucx/request.hpp"
#include "worker/operation.hpp"

namespace ucx::detail {

class file_turn;
struct turn_tag {};

/// The change that an operation makes, as later ones see it.
enum class file_change : std::uint8_t {
  none,  ///< It reads or writes bytes, or waits for those.
  name,  ///< It is a commit.
  size,  ///< It gives the file another size.
};

/// Each operation waits for those that were started before it and do not bear it beside them:
///
///     under way | may begin beside it
///     none      | all
///     name      | none
///     size      | nothing
///
/// None overtakes one that waits. Under the worker's lock.
class file_turns {
 public:
  file_turns() noexcept = default;
  file_turns(const file_turns&) = delete;
  file_turns& operator=(const file_turns&) = delete;

  /// Returns whether such an operation would have to wait.
  bool are_taken(file_change wanted) const noexcept;

 private:
  friend class file_turn;
  class waiting;

  void begin(file_turn& next) noexcept;
  void ended(file_change what) noexcept;

  unsigned commits_ = 0;
  unsigned resizes_ = 0;
  bool lets_in_ = false;  // further out on the stack
  intrusive_list<waiting, turn_tag> waiting_;
};

/// The turn of one operation. Under the worker's lock, but for its destructor.
class file_turn {
 public:
  file_turn(std::shared_ptr<file_turns> of, file_change what) noexcept
      : of_(std::move(of)), what_(what) {}
  file_turn(const file_turn&) = delete;
  file_turn& operator=(const file_turn&) = delete;

  /// Waits for it; an empty request where it has come.
  request wait(worker_core& worker);
  /// The server was asked. Its answer ends the turn, also where the operation is given up.
  void asked() noexcept { is_asked_ = true; }
  bool is_asked() const noexcept { return is_asked_; }
  /// It is over, if it has come: others begin.
  void leave() noexcept;

 private:
  friend class file_turns;

  const std::shared_ptr<file_turns> of_;
  const file_change what_;
  bool has_come_ = false;
  bool is_asked_ = false;
};

}  // namespace ucx::detail
