// A terminal on which a program shows how far it has come.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

namespace ucx::test {

struct terminal_result {
  int code = -1;      ///< The exit code; -1 when a signal ended it.
  std::string shown;  ///< What came to the terminal.
};

/// Runs `program` with its standard error stream on a terminal of `columns`, for a minute at most.
inline terminal_result run_on_terminal(const std::string& program,
                                       const std::vector<std::string>& arguments,
                                       unsigned short columns) {
  int ours = -1;
  int theirs = -1;
  ::winsize size = {24, columns, 0, 0};
  if (::openpty(&ours, &theirs, nullptr, nullptr, &size) != 0) {
    throw std::runtime_error("no terminal");
  }
  ::fcntl(ours, F_SETFD, FD_CLOEXEC);
  ::fcntl(theirs, F_SETFD, FD_CLOEXEC);
  std::vector<char*> words{const_cast<char*>(program.c_str())};
  for (const std::string& each : arguments) words.push_back(const_cast<char*>(each.c_str()));
  words.push_back(nullptr);
  ::posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, theirs, STDERR_FILENO);
  pid_t child = -1;
  const int error =
      ::posix_spawn(&child, program.c_str(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(theirs);
  terminal_result result;
  if (error != 0) throw std::runtime_error("cannot run " + program);
  ::pollfd readable = {ours, POLLIN, 0};
  char piece[4096];
  for (int seconds = 0; seconds < 60;) {
    if (::poll(&readable, 1, 1000) == 0) {
      ++seconds;
      continue;
    }
    const ssize_t got = ::read(ours, piece, sizeof piece);
    if (got <= 0) break;  // EIO: the other side is closed
    result.shown.append(piece, static_cast<std::size_t>(got));
  }
  ::close(ours);
  ::kill(child, SIGHUP);  // nothing to one that has ended
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) result.code = WEXITSTATUS(status);
  return result;
}

}  // namespace ucx::test
