#include "process/shutdown_signals.hpp"

#include <pthread.h>

#include <cstdlib>
#include <utility>

namespace ucx::tool {

void end_by(int signal) {
  std::signal(signal, SIG_DFL);
  ::sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, signal);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(signal);
  std::_Exit(128 + signal);
}

void end_by_signals() noexcept {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (!is_ignored(signal)) std::signal(signal, [](int came) { std::_Exit(128 + came); });
  }
}

bool is_ignored(int signal) noexcept {
  struct ::sigaction now = {};
  return ::sigaction(signal, nullptr, &now) == 0 && now.sa_handler == SIG_IGN;
}

shutdown_signals::shutdown_signals(std::chrono::nanoseconds limit, bool looks_at_hangup)
    : outlives_terminal_(is_ignored(SIGHUP)), looks_at_hangup_(looks_at_hangup), set_(), before_() {
  ::sigemptyset(&set_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaddset(&set_, signal);
  ::pthread_sigmask(SIG_BLOCK, &set_, &before_);
  watch_ = std::jthread([this, limit](const std::stop_token& over) { watch(over, limit); });
}

shutdown_signals::~shutdown_signals() {
  watch_.request_stop();
  ::pthread_kill(watch_.native_handle(), SIGHUP);  // wakes it; blocked in every thread
  watch_.join();
  if (!has_come()) ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void shutdown_signals::watch(const std::stop_token& over, std::chrono::nanoseconds limit) {
  int signal = 0;
  do {
    while (::sigwait(&set_, &signal) != 0) {
    }
    if (over.stop_requested()) return;
  } while (signal == SIGHUP && (note_hangup() || outlives_terminal_));
  std::unique_lock guard(mutex_);
  if (stage_ == stage::usual) end_by(signal);
  stage_ = stage_ == stage::left ? stage::taken : stage::came;
  changes_.notify_all();
  changes_.wait_for(guard, over, limit, [this] { return stage_ == stage::taken; });
  if (stage_ != stage::taken && !over.stop_requested()) end_by(signal);
}

/// Returns whether it is no end.
bool shutdown_signals::note_hangup() {
  const std::lock_guard guard(mutex_);
  hung_up_ = looks_at_hangup_;
  changes_.notify_all();
  return looks_at_hangup_;
}

bool shutdown_signals::take_hangup() {
  const std::lock_guard guard(mutex_);
  return std::exchange(hung_up_, false);
}

void shutdown_signals::expect() {
  const std::lock_guard guard(mutex_);
  stage_ = stage::expected;
}

bool shutdown_signals::wait_for(std::chrono::nanoseconds limit) {
  std::unique_lock guard(mutex_);
  const auto ends = [this] { return has_come() || ends_; };
  changes_.wait_for(guard, limit, [&] { return ends() || hung_up_; });
  if (!ends()) return false;
  if (stage_ == stage::came) stage_ = stage::taken;
  if (stage_ == stage::expected) stage_ = stage::left;
  changes_.notify_all();
  return true;
}

void shutdown_signals::end() {
  const std::lock_guard guard(mutex_);
  ends_ = true;
  changes_.notify_all();
}

patience::patience(std::chrono::nanoseconds limit)
    : watch_([this, limit](const std::stop_token& over) { watch(over, limit); }) {}

void patience::watch(const std::stop_token& over, std::chrono::nanoseconds limit) {
  std::unique_lock guard(mutex_);
  if (!begins_.wait(guard, over, [this] { return exit_code_.has_value(); })) return;
  begins_.wait_for(guard, over, limit, [] { return false; });
  if (!over.stop_requested()) std::_Exit(*exit_code_);
}

void patience::begin(int exit_code) noexcept {
  const std::lock_guard guard(mutex_);
  exit_code_ = exit_code;
  begins_.notify_all();
}

}  // namespace ucx::tool
