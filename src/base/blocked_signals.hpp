// Threads of the library's own, which take no signals.
#pragma once

#include <csignal>

namespace ucx::detail {

/// Threads that begin meanwhile take no signals, from their first moment on: handlers of the
/// program's run on threads of the program's.
class blocked_signals {
 public:
  blocked_signals() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  blocked_signals(const blocked_signals&) = delete;
  blocked_signals& operator=(const blocked_signals&) = delete;
  ~blocked_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_ = {};
};

}  // namespace ucx::detail
