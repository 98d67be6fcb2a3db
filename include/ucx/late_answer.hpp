// Answers that come after their function has returned: docs/reference/calls.md, "Later answers".
#pragma once

#include <exception>
#include <memory>

#include "ucx/call_writer.hpp"
#include "ucx/version.hpp"

namespace ucx {

struct call_context;

namespace detail {
class deferred_call;
}

/// The answer of a call whose function answers after it has returned (`call_context::defer()`).
/// It is given once. A `late_answer` that dies without one answers `call_failed`.
///
///     calls.add_dynamic("slow", "()->i32", [](ucx::call_context& call, auto&, auto&) {
///       start_work([later = call.defer()](int found) mutable {
///         later.send(ucx::call_writer().integer(found));
///       });
///     });
///
/// Threads: as the worker's, one at a time. The answer goes out on the thread that drives it.
class UCXIO_EXPORT late_answer {
 public:
  /// Makes an object without a call.
  late_answer() noexcept;
  late_answer(late_answer&& other) noexcept;
  late_answer& operator=(late_answer&& other) noexcept;
  ~late_answer();

  /// Returns whether the call waits for its answer here.
  explicit operator bool() const noexcept { return call_ != nullptr; }
  /// Returns the facts of the call. The arguments are gone when the function has returned.
  /// Lifetime: until the answer is given.
  /// REQUIRES: the call waits.
  call_context& context() const noexcept;

  /// Answers with a result: one value, a nil where the signature has one. A result that is another
  /// one, or can not be sent, is `call_failed` at the caller. Does nothing without a call.
  void send(const call_writer& result) noexcept;
  /// Answers `call_failed`, with what a function throws.
  void fail(std::exception_ptr thrown) noexcept;

 private:
  friend struct call_context;
  explicit late_answer(std::shared_ptr<detail::deferred_call> call) noexcept;

  std::shared_ptr<detail::deferred_call> call_;
};

}  // namespace ucx
