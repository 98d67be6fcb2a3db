// The time in which a thread does without the GIL.
#pragma once

#include <chrono>

#include <nanobind/nanobind.h>

namespace ucxio_python {

/// Releases the GIL while it lives. A thread that wants it back while the interpreter goes, or
/// later, stays here for good: Python would end it by unwinding its stack, which C++ does not
/// survive.
class without_gil {
 public:
  without_gil() noexcept;
  without_gil(const without_gil&) = delete;
  without_gil& operator=(const without_gil&) = delete;
  ~without_gil();

  /// Says that the interpreter has gone. Returns when no other thread is in a call of the library
  /// any more, after `limit` at most.
  static void end_of_interpreter(std::chrono::nanoseconds limit) noexcept;

 private:
  PyThreadState* state_;
};

}  // namespace ucxio_python
