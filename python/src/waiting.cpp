#include "waiting.hpp"

#include <cmath>
#include <thread>

#include <ucx/context.hpp>
#include <ucx/error.hpp>

#include "without_gil.hpp"

namespace ucxio_python {
namespace {

namespace nb = nanobind;

/// How many threads of `side_call` there are.
struct side_calls {
  std::mutex lock;
  std::condition_variable changed;
  std::size_t running = 0;
};

// Never destroyed: such a thread may outlive the static objects.
side_calls& all_calls() {
  static auto* const made = new side_calls();
  return *made;
}

}  // namespace

void refuse_forked_child() {
  if (!ucx::is_forked_child()) return;
  throw ucx::error(ucx::errc::forked_child,
                   "this process was forked from one that used ucxio, which does not survive that; "
                   "start it with multiprocessing_context=\"spawn\" or \"forkserver\"");
}

std::chrono::nanoseconds duration_of(std::optional<double> seconds) {
  constexpr double most = 1e9;  // some 30 years
  if (!seconds) return std::chrono::nanoseconds::zero();
  if (std::isnan(*seconds) || *seconds <= 0)
    throw nb::value_error("a timeout has to be above 0 seconds");
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(std::min(*seconds, most)));
}

ucx::io_options within(std::optional<double> timeout, bool verify) {
  ucx::io_options options;
  options.timeout = duration_of(timeout);
  options.verify = verify;
  return options;
}

void check_signals() {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void side_call::run(std::shared_ptr<side_call> call) {
  {
    const std::lock_guard guard(all_calls().lock);
    ++all_calls().running;
  }
  try {
    std::thread([call]() mutable {
      try {
        call->work_();
      } catch (...) {
        call->failure_ = std::current_exception();
      }
      call->work_ = nullptr;
      {
        const std::lock_guard guard(call->lock_);
        call->has_ended_ = true;
        call->ended_.notify_all();
      }
      call.reset();
      const std::lock_guard guard(all_calls().lock);
      --all_calls().running;
      all_calls().changed.notify_all();
    }).detach();
  } catch (const std::system_error& failed) {
    const std::lock_guard guard(all_calls().lock);
    --all_calls().running;
    throw ucx::error(ucx::errc::busy, std::string("no thread can be started: ") + failed.what());
  }
  while (!call->wait()) check_signals();
  if (call->failure_) std::rethrow_exception(call->failure_);
}

bool side_call::wait() {
  const without_gil free;
  std::unique_lock guard(lock_);
  return ended_.wait_for(guard, slice, [&] { return has_ended_; });
}

void side_call::wait_for_all(std::chrono::nanoseconds limit) {
  std::unique_lock guard(all_calls().lock);
  all_calls().changed.wait_for(guard, limit, [] { return all_calls().running == 0; });
}

}  // namespace ucxio_python
