// How a process that was forked comes to its end, in every way that a program knows.
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace ucx::test {

/// Returns the status of a command that a shell runs.
inline int status_of_shell(const std::string& how) {
  if (how == "system") return std::system("exit 0");  // NOLINT(concurrency-mt-unsafe)
  std::FILE* const shell = ::popen("exit 0", "r");
  return shell == nullptr ? -1 : ::pclose(shell);
}

/// Ends the calling process, which was forked; only "return" returns, to a caller that reads no
/// further command and whose own destructors do the rest.
inline void end_as_child(const std::string& how) {
  ::alarm(60);  // one that hangs is no peer's for ever
  const int nowhere = ::open("/dev/null", O_RDWR);
  ::dup2(nowhere, 0);
  ::dup2(nowhere, 1);
  if (how == "return") return;
  if (how == "exec") ::execl("/bin/true", "true", nullptr);
  if (how == "_exit") ::_exit(0);
  if (how == "daemon" && ::daemon(0, 1) != 0) ::_exit(126);
  std::exit(0);  // NOLINT(concurrency-mt-unsafe)
}

/// Returns how the child ended that is called, or its daemon; in the child itself, "". Both ends of
/// the pipe are closed by all of the child's descendants when the last of them has.
inline std::string fork_off(const std::string& how) {
  if (how == "system" || how == "popen") return std::to_string(status_of_shell(how));
  int ends[2] = {};
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const ::pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    end_as_child(how);
    return {};
  }
  ::close(ends[1]);
  int status = -1;
  ::waitpid(child, &status, 0);
  char none = 0;
  while (::read(ends[0], &none, 1) > 0) {
  }
  ::close(ends[0]);
  return std::to_string(status);
}

}  // namespace ucx::test
