#include "interruption.hpp"

#include <pthread.h>

#include <cerrno>
#include <ctime>
#include <utility>

#include "shutdown_signals.hpp"

namespace ucx::tool {
namespace {

bool is_ignored(int signal) noexcept {
  struct ::sigaction now = {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

::timespec timespec_of(std::chrono::nanoseconds time) noexcept {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time);
  return {static_cast<std::time_t>(seconds.count()), static_cast<long>((time - seconds).count())};
}

}  // namespace

interruption::interruption(std::function<void()> hurry, std::chrono::nanoseconds limit)
    : hurry_(std::move(hurry)), set_(), ignored_(), before_() {
  ::sigemptyset(&set_);
  ::sigemptyset(&ignored_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    ::sigaddset(&set_, signal);
    if (is_ignored(signal)) ::sigaddset(&ignored_, signal);
  }
  ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
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
  signal_ = signal;
  std::jthread hurrying([this] {  // it may wait for a lock
    stop_.request_stop();
    hurry_();
  });
  const ::timespec left = timespec_of(limit);
  int next = 0;
  do {
    next = ::sigtimedwait(&set_, nullptr, &left);
  } while (next < 0 && errno == EINTR);
  if (over.stop_requested()) return;
  end_by(signal);
}

void interruption::end() const { end_by(signal_); }

}  // namespace ucx::tool
