#include "without_gil.hpp"

#include <atomic>
#include <thread>

namespace ucxio_python {
namespace {

std::atomic<bool> has_ended = false;  // there is no interpreter any more
std::atomic<int> away = 0;            // threads without the GIL

[[noreturn]] void stay() noexcept {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

}  // namespace

without_gil::without_gil() noexcept : state_(PyEval_SaveThread()) { ++away; }

without_gil::~without_gil() {
  --away;
  if (has_ended) stay();
  try {
    PyEval_RestoreThread(state_);
  } catch (...) {
    // Before 3.14 Python ends the thread by unwinding its stack, which C++ can not be left by.
    stay();
  }
}

void without_gil::end_of_interpreter(std::chrono::nanoseconds limit) noexcept {
  has_ended = true;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (away > 0 && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

}  // namespace ucxio_python
