#include "support/process/child_process.hpp"

#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

extern char** environ;

namespace ucx::test {
namespace {

using clock = std::chrono::steady_clock;

[[noreturn]] void fail(int error, const char* what) {
  throw std::system_error(error, std::generic_category(), what);
}

/// Read before a case can leave the mounts that the program was started from: then, under another
/// root, the system names it from the root of the machine.
const std::filesystem::path folder_of_programs =
    std::filesystem::read_symlink("/proc/self/exe").parent_path();

}  // namespace

std::string sibling_program(const std::string& name) {
  return (folder_of_programs / name).string();
}

child_process::child_process(const std::string& program,
                             const std::vector<std::string>& arguments) {
  // A pair of sockets rather than pipes: writing to a child that is gone raises no SIGPIPE.
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    fail(errno, "socketpair");
  }
  channel_ = ends[0];
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int error = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(channel_);
    fail(error, program.c_str());
  }
}

child_process::child_process(child_process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      channel_(std::exchange(other.channel_, -1)),
      unread_(std::move(other.unread_)),
      status_(other.status_) {}

child_process::~child_process() {
  if (pid_ > 0) kill();
  if (channel_ >= 0) ::close(channel_);
}

void child_process::write_line(const std::string& line) {
  const std::string text = line + '\n';
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = ::send(channel_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail(errno, "writing to a child");
    at += static_cast<std::size_t>(written);
  }
}

std::optional<std::string> child_process::read_line(std::chrono::nanoseconds limit) {
  const clock::time_point until = clock::now() + limit;
  for (;;) {
    if (const std::size_t end = unread_.find('\n'); end != std::string::npos) {
      std::string line = unread_.substr(0, end);
      unread_.erase(0, end + 1);
      return line;
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    ::pollfd readable = {channel_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) == 0) return {};
    std::array<char, 4096> buffer{};
    const ssize_t count = ::read(channel_, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    unread_.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

void child_process::send_signal(int signal) const {
  if (pid_ > 0 && !status_) ::kill(pid_, signal);
}

void child_process::stop() {
  send_signal(SIGSTOP);
  int status = 0;
  // The kernel tells when every thread of it stands still.
  while (::waitpid(pid_, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
  if (!WIFSTOPPED(status)) status_ = status;
}

bool child_process::has_stopped_within(std::chrono::nanoseconds limit) {
  for (const clock::time_point until = clock::now() + limit; clock::now() < until;) {
    int status = 0;
    if (::waitpid(pid_, &status, WUNTRACED | WNOHANG) == pid_) {
      if (WIFSTOPPED(status)) return true;
      status_ = status;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

void child_process::resume() const { send_signal(SIGCONT); }

void child_process::kill() {
  send_signal(SIGKILL);
  wait(std::chrono::seconds(10));
}

bool child_process::running() { return !wait(std::chrono::nanoseconds::zero()).has_value(); }

std::optional<int> child_process::wait(std::chrono::nanoseconds limit) {
  const clock::time_point until = clock::now() + limit;
  while (!status_) {
    int status = 0;
    const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) {
      status_ = status;
    } else if (clock::now() >= until) {
      break;
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return status_;
}

}  // namespace ucx::test
