#include "process/interruption.hpp"

#include <pthread.h>

#include <ctime>
#include <mutex>
#include <optional>
#include <utility>

#include "output/exit_code.hpp"
#include "process/shutdown_signals.hpp"

namespace ucx::tool {
namespace {

using std::chrono::steady_clock;

/// `timeout`, and schedulers, signal a process, and then its group.
constexpr std::chrono::milliseconds one_wish{500};

::timespec timespec_of(std::chrono::nanoseconds time) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {static_cast<std::time_t>(seconds.count()), static_cast<long>((time - seconds).count())};
}

}  // namespace

interruption::interruption(std::function<void(int)> hurry, std::chrono::nanoseconds limit)
    : hurry_(std::move(hurry)), set_(), ignored_(), before_() {
  ::sigemptyset(&set_);
  ::sigemptyset(&ignored_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaddset(&set_, signal);
    if (is_ignored(signal)) ::sigaddset(&ignored_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  hurrying_ = std::jthread([this](const std::stop_token& over) {
    std::unique_lock guard(mutex_);
    if (!comes_.wait(guard, over, [this] { return signal_ != 0; })) return;
    guard.unlock();
    stop_.request_stop();
    hurry_(signal_);
  });
  watch_ = std::jthread([this, limit](const std::stop_token& over) { watch(over, limit); });
}

interruption::~interruption() {
  watch_.request_stop();
  ::pthread_kill(watch_.native_handle(), SIGHUP);  // wakes it; blocked in every thread
  watch_.join();
  if (!requested()) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void interruption::watch(const std::stop_token& over, std::chrono::nanoseconds limit) {
  int signal = 0;
  do {
    while (::sigwait(&set_, &signal) != 0) {
    }
    if (over.stop_requested()) return;
  } while (::sigismember(&ignored_, signal) == 1);
  {
    const std::lock_guard guard(mutex_);
    signal_ = signal;
    comes_.notify_all();
  }
  const auto came = steady_clock::now();
  for (auto gone = limit.zero(); gone < limit; gone = steady_clock::now() - came) {
    const ::timespec left = timespec_of(limit - gone);
    const int next = ::sigtimedwait(&set_, nullptr, &left);
    if (over.stop_requested()) return;
    if (next <= 0 || ::sigismember(&ignored_, next) == 1) continue;
    if (steady_clock::now() - came >= one_wish) break;
  }
  end_by(signal);
}

void interruption::end() const { end_by(signal_); }

void run_watched(progress_mode mode, const transfer_counters& counters, bool may_be_drawn,
                 const std::function<void(progress_line&)>& work) {
  std::mutex mutex;
  std::optional<progress_line> line;
  std::optional<interruption> stop;
  const auto end = [&](int signal) {
    {
      const std::lock_guard guard(mutex);
      if (line) line->end(128 + signal);  // as shells report it
    }
    end_by(signal);
  };
  if (progress_line::is_shown(mode, may_be_drawn)) stop.emplace(end);
  {
    const std::lock_guard guard(mutex);
    line.emplace(mode, counters, may_be_drawn);
  }
  try {
    work(*line);
  } catch (...) {
    line->end(static_cast<int>(exit_code_of_handled()));
    throw;
  }
  line->end(static_cast<int>(exit_code::ok));
}

}  // namespace ucx::tool
