#include "support/process/command.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "support/process/process_memory.hpp"

extern char** environ;

namespace ucx::test {
namespace {

using clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds glance{5};

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  return ends;
}

/// Writes until nothing more goes in.
void fill(int pipe) {
  const int flags = ::fcntl(pipe, F_GETFL);
  ::fcntl(pipe, F_SETFL, flags | O_NONBLOCK);
  std::array<char, 4096> buffer{};
  while (::write(pipe, buffer.data(), buffer.size()) > 0) {
  }
  ::fcntl(pipe, F_SETFL, flags);
}

}  // namespace

/// Plans what `descriptor` of the program is; returns the end of a pipe that is read here, or -1.
int command::connect(output where, int descriptor, const char* file,
                     ::posix_spawn_file_actions_t& actions) {
  if (where == output::closed) {
    ::posix_spawn_file_actions_addclose(&actions, descriptor);
    return -1;
  }
  if (where == output::kept || where == output::full_disk) {
    const std::string path = where == output::kept ? (folder_ / file).string() : "/dev/full";
    ::posix_spawn_file_actions_addopen(&actions, descriptor, path.c_str(), O_CREAT | O_WRONLY,
                                       0600);
    return -1;
  }
  const auto [reading, writing] = make_pipe();
  ours_.push_back(writing);
  ::posix_spawn_file_actions_adddup2(&actions, writing, descriptor);
  if (where == output::pipe) return reading;
  if (where == output::stuck) fill(writing);
  if (where == output::broken) ::close(reading);
  if (where == output::stuck) ours_.push_back(reading);
  return -1;
}

command::command(const std::string& program, const std::vector<std::string>& arguments,
                 output where, output errors) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  pipe_ = connect(where, STDOUT_FILENO, "out", actions);
  connect(errors, STDERR_FILENO, "err", actions);
  std::vector<char*> argv{const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const int error = ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (where == output::pipe) {
    // Its end shows only when nobody else could write.
    ::close(ours_.front());
    ours_.erase(ours_.begin());
  }
  if (error != 0) {
    close_pipe();
    throw std::system_error(error, std::generic_category(), program);
  }
}

command::~command() {
  if (!status_) {
    send_signal(SIGKILL);
    finish(std::chrono::seconds(10));
  }
  close_pipe();
  for (const int each : ours_) ::close(each);
}

void command::send_signal(int signal) const {
  if (pid_ > 0 && !status_) ::kill(pid_, signal);
}

std::string command::read(std::size_t count, std::chrono::nanoseconds limit) {
  const clock::time_point until = clock::now() + limit;
  std::string got;
  std::array<char, 65536> buffer{};
  while (got.size() < count) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - clock::now());
    ::pollfd readable = {pipe_, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&readable, 1, static_cast<int>(left.count())) == 0) break;
    const ssize_t some = ::read(pipe_, buffer.data(), std::min(buffer.size(), count - got.size()));
    if (some < 0 && errno == EINTR) continue;
    if (some <= 0) break;
    got.append(buffer.data(), static_cast<std::size_t>(some));
  }
  return got;
}

void command::close_pipe() {
  if (pipe_ >= 0) ::close(std::exchange(pipe_, -1));
}

std::string command::errors() const { return content_of(folder_ / "err"); }

command_result command::finish(std::chrono::nanoseconds limit) {
  const clock::time_point until = clock::now() + limit;
  command_result result;
  if (pipe_ >= 0) result.out = read(std::numeric_limits<std::size_t>::max(), limit);
  result.in_time = true;
  while (!status_) {
    int status = 0;
    // What wait4 tells counts this process, too: as it was when it started the other.
    peak_memory_ = std::max(peak_memory_, peak_memory(pid_));
    if (::waitpid(pid_, &status, result.in_time ? WNOHANG : 0) == pid_) {
      status_ = status;
    } else if (clock::now() >= until) {
      result.in_time = false;
      send_signal(SIGKILL);
    } else {
      std::this_thread::sleep_for(glance);
    }
  }
  if (WIFEXITED(*status_)) result.code = WEXITSTATUS(*status_);
  if (WIFSIGNALED(*status_)) result.signal = WTERMSIG(*status_);
  if (result.out.empty()) result.out = content_of(folder_ / "out");
  result.err = errors();
  result.peak_memory = peak_memory_;
  return result;
}

}  // namespace ucx::test
