// Waits that Python can interrupt.
#pragma once

#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>
#include <ucx/request.hpp>

#include "borrowed.hpp"
#include "without_gil.hpp"

namespace ucxio_python {

/// How long a wait lasts before Python's signal handlers have their turn.
constexpr auto slice = std::chrono::milliseconds(50);

/// Fails in a child of `fork()` whose parent used the library.
/// Errors: ucxio.Error with the code forked_child.
void refuse_forked_child();

/// Returns a time-out in seconds as the library has it. None, and what is not above zero, is the
/// default.
std::chrono::nanoseconds duration_of(std::optional<double> seconds);

/// Returns options with this time-out.
ucx::io_options within(std::optional<double> timeout, bool verify = false);

/// Calls Python's signal handlers. Throws what they raise.
/// REQUIRES: the GIL.
void check_signals();

/// Starts an operation without the GIL, and waits for it. If a signal handler raises, `give_up`
/// gets the request, without the GIL. REQUIRES: the GIL. Neither function touches an object of
/// Python's.
template <class Start, class GiveUp>
void wait_for(Start&& start, GiveUp&& give_up) {
  refuse_forked_child();
  ucx::request going;
  bool done = false;
  {
    const without_gil free;
    going = start();
    done = going.wait_for(slice);
  }
  while (!done) {
    try {
      check_signals();
    } catch (...) {
      const without_gil free;
      going.cancel();
      give_up(std::move(going));
      throw;
    }
    const without_gil free;
    done = going.wait_for(slice);
  }
  if (going.error()) going.wait();
}

/// Makes a transfer from or to `lent`. If a signal handler raises, `lent` is kept until UCX has let
/// go of it.
template <class Start>
void transfer(borrowed& lent, Start&& start) {
  wait_for(std::forward<Start>(start),
           [&lent](ucx::request&& going) { going.orphan(left_behind(std::move(lent))); });
}

/// Makes many transfers from or to `lent`: `start` puts them into `going`. Each request has its
/// outcome afterwards. If `start` fails, or a signal handler raises, all of them keep `lent`.
template <class Start>
void transfer_all(borrowed& lent, std::vector<ucx::request>& going, Start&& start) {
  refuse_forked_child();
  try {
    bool done = false;
    {
      const without_gil free;
      start();
      done = ucx::wait_all(going, slice);
    }
    while (!done) {
      check_signals();
      const without_gil free;
      done = ucx::wait_all(going, slice);
    }
  } catch (...) {
    const auto kept = std::make_shared<left_behind>(std::move(lent));
    const without_gil free;
    for (ucx::request& each : going) {
      each.cancel();
      each.orphan(kept);
    }
    throw;
  }
}

/// Asks a server a question that borrows nothing. Its result is the caller's, which may go when
/// this returns.
template <class Start>
void ask(Start&& start) {
  wait_for(std::forward<Start>(start),
           [](ucx::request&& going) { const ucx::request ends = std::move(going); });
}

/// A call on a thread of its own.
class side_call {
 public:
  explicit side_call(std::function<void()> work) : work_(std::move(work)) {}

  /// Runs `call` on a new thread, and waits for it. If a signal handler raises, the call goes on
  /// alone, within its own deadlines.
  /// REQUIRES: the GIL.
  static void run(std::shared_ptr<side_call> call);
  /// Waits until no call runs any more, `limit` at most.
  static void wait_for_all(std::chrono::nanoseconds limit);

 private:
  bool wait();
  std::mutex lock_;
  std::condition_variable ended_;
  std::function<void()> work_;
  std::exception_ptr failure_;
  bool has_ended_ = false;
};

/// Makes a call for which the library has no request, in a way that Python can interrupt. `work`
/// owns what it uses, and touches no object of Python's.
/// REQUIRES: the GIL.
template <class Work>
auto aside(Work work) {
  refuse_forked_child();
  using outcome = std::invoke_result_t<Work&>;
  if constexpr (std::is_void_v<outcome>) {
    auto shared = std::make_shared<Work>(std::move(work));
    side_call::run(std::make_shared<side_call>([shared] { (*shared)(); }));
  } else {
    auto shared = std::make_shared<Work>(std::move(work));
    auto result = std::make_shared<std::optional<outcome>>();
    side_call::run(std::make_shared<side_call>([shared, result] { result->emplace((*shared)()); }));
    return std::move(**result);
  }
}

}  // namespace ucxio_python
