// Whether the system lets a process read the memory of one: a sandbox may not.
#pragma once

#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <vector>

#include "ucx/context.hpp"

namespace ucx::test {

/// Tries it on this process itself.
inline bool system_reads_processes() {
  int from = 1;
  int to = 0;
  const ::iovec local{&to, sizeof to};
  const ::iovec remote{&from, sizeof from};
  return ::process_vm_readv(::getpid(), &local, 1, &remote, 1, 0) == sizeof to && to == from;
}

/// Tries it on a child: some sandboxes forbid only that.
inline bool system_reads_children() {
  static volatile int number = 0;
  number = 1;
  const ::pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  if (child < 0) return false;
  int read = 0;
  const ::iovec local{&read, sizeof read};
  const ::iovec remote{const_cast<int*>(&number), sizeof read};
  const bool may = ::process_vm_readv(child, &local, 1, &remote, 1, 0) == sizeof read && read == 1;
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return may;
}

/// Returns whether UCX has the transport for it, and the library lets UCX: from 1.14 to 1.21 it
/// does not where a list names others beside it. Without it nothing is read where it lies.
inline bool has_cma(const context& asked) {
  const std::vector<std::string> transports = asked.transports();
  return std::any_of(transports.begin(), transports.end(),
                     [](const std::string& each) { return each.starts_with("cma/"); });
}

}  // namespace ucx::test
