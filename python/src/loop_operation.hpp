// An operation that ends in an event loop of Python's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <nanobind/nanobind.h>
#include <ucx/request.hpp>

#include "borrowed.hpp"
#include "loop_worker.hpp"
#include "waiting.hpp"
#include "without_gil.hpp"

namespace ucxio_python {

/// An operation that was started, for Python. It has what it borrowed until UCX has let go of that:
/// where it goes before its end, the request keeps it.
/// REQUIRES: all members are called with the GIL.
class loop_operation {
 public:
  /// Makes the result of the ended request. It owns what the operation uses, and no object of
  /// Python's.
  using result_function = std::function<nanobind::object(const ucx::request&)>;

  /// `target` is where the operation puts what it finds. What goes on alone keeps that, and nothing
  /// of the client or the worker: those would keep it in turn, with no thread that drives them.
  loop_operation(std::shared_ptr<loop_worker> over, borrowed&& lent, std::shared_ptr<void> target,
                 result_function result, ucx::request going);
  loop_operation(loop_operation&&) noexcept = default;
  loop_operation& operator=(loop_operation&&) = delete;
  ~loop_operation();

  /// Returns whether it has ended, so that Python may have the buffers back.
  bool is_done() const noexcept { return going_.done(); }
  /// Returns the number by which the worker tells the end, unless it had ended at once.
  std::uint64_t number() const noexcept { return number_; }
  /// Asks for an early end, which is told as always.
  void cancel();
  /// Gives the buffers back, and returns the result. It is made once.
  /// Errors: the operation's; busy (it has not ended), closed (it was made, or dropped).
  nanobind::object result();
  /// Gives the buffers back, and drops the result.
  /// REQUIRES: it has ended.
  void release();

 private:
  std::shared_ptr<loop_worker> over_;
  std::uint64_t number_ = 0;
  borrowed lent_;
  std::shared_ptr<void> target_;
  result_function result_;
  ucx::request going_;
};

/// Makes the result of an operation that has none.
inline nanobind::object nothing() { return nanobind::none(); }

/// Starts an operation that ends in the loop. `result` may take the ended request.
template <class Start, class Result>
nanobind::object begin(const std::shared_ptr<loop_worker>& loop, borrowed& lent, Start start,
                       Result result, std::shared_ptr<void> target) {
  refuse_forked_child();
  // Both functions stay while the object does: the operation may use what either owns.
  auto both = std::make_shared<std::pair<Start, Result>>(std::move(start), std::move(result));
  ucx::request going;
  {
    const without_gil free;
    going = both->first();
  }
  const auto make = [both](const ucx::request& ended) {
    if constexpr (std::is_invocable_v<Result&, const ucx::request&>) {
      return both->second(ended);
    } else {
      return both->second();
    }
  };
  return nanobind::cast(
      loop_operation(loop, std::move(lent), std::move(target), make, std::move(going)));
}

/// Starts a transfer from or to `lent`. With a loop it returns the operation. Without one it waits,
/// and returns the result. `start` and `result` own what they use, and no object of Python's.
template <class Start, class Result>
nanobind::object finish_transfer(const std::shared_ptr<loop_worker>& loop, borrowed& lent,
                                 Start start, Result result) {
  if (!loop) {
    transfer(lent, start);
    return result();
  }
  return begin(loop, lent, std::move(start), std::move(result), nullptr);
}

/// Likewise for a question, which borrows nothing, and whose answer is put into `target`.
template <class Start, class Result>
nanobind::object finish_question(const std::shared_ptr<loop_worker>& loop, Start start,
                                 Result result, std::shared_ptr<void> target = nullptr) {
  if (!loop) {
    ask(start);
    return result();
  }
  borrowed no_buffer;
  return begin(loop, no_buffer, std::move(start), std::move(result), std::move(target));
}

void add_loop_operation(nanobind::module_& module);

}  // namespace ucxio_python
